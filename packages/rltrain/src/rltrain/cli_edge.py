# SPDX-License-Identifier: Apache-2.0
"""Where errors of commands become one line and an exit status, and how a long wait looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import typer

REFUSED: Final = 2
STOPPED: Final = 1
"""By a gate or a rule of the run's own."""
PLACE: Final = "name a place that can be read and written"


@contextmanager
def edge(mend: str = PLACE) -> Generator[None]:
    """What a user can set right is one line on standard error and exit 2; what a gate or a rule
    stopped is one and exit 1; Ctrl-C is exit 130.

    ``mend`` says what to do about a file that cannot be used.
    """
    try:
        yield
    except Exception as error:
        if (line := line_of(error, mend)) is None:
            raise
        fail(line, STOPPED if isinstance(error, _stopped()) else REFUSED)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def line_of(error: Exception, mend: str = PLACE) -> str | None:
    """What a user can set right, in words; None where it is nothing of the kind."""
    from envkit.fault import EnvkitError
    from rltrain.refused import Refused

    match error:
        case Refused() | EnvkitError():
            return str(error)
        case ModuleNotFoundError():
            return f"{error.name} is not installed; pip install 'rltrain[torch]'"
        case OSError(filename=str() | bytes() as name):
            return f"{os.fsdecode(name)}: {error.strerror}; {mend}"
        case _:
            return None


def fail(line: str, status: int = REFUSED) -> None:
    """Say why, and exit."""
    print(f"rltrain: {' '.join(line.split())}", file=sys.stderr)
    raise typer.Exit(status)


def _stopped() -> type[Exception]:
    from rltrain.refused import Stopped

    return Stopped
