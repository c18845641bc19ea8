# SPDX-License-Identifier: Apache-2.0
"""What to say when a package of an optional extra is not installed."""

from __future__ import annotations


def install_line(error: ModuleNotFoundError, extra: str) -> str:
    """``mcp is not installed; run: pip install 'envkit[servers]'``.

    Raises the error again where the missing module is our own: that is a defect, not a choice.
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "envkit"):
        raise error
    return f"{package} is not installed; run: pip install 'envkit[{extra}]'"
