# SPDX-License-Identifier: Apache-2.0
"""A wrong command line, on one line: for the programs of both packages."""

from __future__ import annotations

import sys
from typing import Any, Final, cast

import typer

USAGE_ERROR: Final = cast(type[Exception], typer.BadParameter.__base__)
"""What a wrong command line raises, in whichever click this typer brings along."""


def misused(error: Exception, program: str) -> str | None:
    """Say on standard error what is wrong, and return it; None where help was shown instead.

    ``error`` is a `USAGE_ERROR`; that no command was given shows the help.
    """
    shown: Any = error
    if type(error).__name__ == "NoArgsIsHelpError":
        shown.show()
        return None
    message = " ".join(shown.format_message().split()).rstrip(".")
    line = f"{message}; see {shown.ctx.command_path if shown.ctx else program} --help"
    print(f"{program}: {line}", file=sys.stderr)
    return line
