# SPDX-License-Identifier: Apache-2.0
"""envkit itself: its version, its Python, and which optional extras are installed."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Final

from envkit import __version__
from envkit.doctor.types import Finding, Status

EXTRAS: Final = {
    "servers": (("mcp", "pdfplumber", "openpyxl", "docx", "pptx"), "MCP servers"),
    "run": (("harbor",), "trials"),
    "modal": (("modal",), "--env with Harbor's Modal environment"),
    "aws": (("boto3",), "images in Amazon's registry"),
}
"""An extra, the packages whose presence shows that it is installed, and what needs it."""

NEEDED: Final = frozenset({"servers", "run"})


def examine(
    is_there: Callable[[str], bool] = lambda package: find_spec(package) is not None,
    system: str = platform.system(),
) -> Iterator[Finding]:
    """The interpreter that runs this, and what is installed beside it."""
    linux = system == "Linux"
    yield Finding(
        name="envkit",
        status=Status.OK if linux else Status.FAIL,
        text=f"{__version__} on Python {platform.python_version()}, {system} {platform.machine()}",
        fix="" if linux else "use Linux: `envkit audit` and `envkit lint` work here, boxes do not",
    )
    for extra, (packages, purpose) in EXTRAS.items():
        absent = [package for package in packages if not is_there(package)]
        yield Finding(
            name=f"[{extra}]",
            status=_status(extra, bool(absent)),
            text=f"not installed ({', '.join(absent)})" if absent else "installed",
            fix=f"pip install 'envkit[{extra}]'" if absent else "",
            needed_for=purpose,
        )


def _status(extra: str, absent: bool) -> Status:
    if not absent:
        return Status.OK
    return Status.FAIL if extra in NEEDED else Status.INFO
