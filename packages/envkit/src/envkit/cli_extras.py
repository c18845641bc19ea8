# SPDX-License-Identifier: Apache-2.0
"""What to say when a package of an optional extra is not installed."""

from __future__ import annotations

from importlib.util import find_spec


def install_line(error: ModuleNotFoundError, extra: str) -> str:
    """``mcp is not installed; run: pip install 'envkit[servers]'``.

    Raises the error again where the missing module is our own: that is a defect, not a choice.
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "envkit"):
        raise error
    return f"{package} is not installed; run: pip install 'envkit[{extra}]'"


def require(*packages: str) -> None:
    """Raises ModuleNotFoundError for the first package that is not installed; imports none."""
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
