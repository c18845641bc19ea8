# SPDX-License-Identifier: Apache-2.0
"""Where errors of commands become one line and an exit status, and how a long wait looks."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer


@contextmanager
def edge() -> Generator[None]:
    """What a user can set right is one line on standard error and exit 2; Ctrl-C is exit 130."""
    from envkit.fault import EnvkitError
    from rltrain.refused import Refused

    try:
        yield
    except (Refused, EnvkitError) as error:
        fail(str(error))
    except ModuleNotFoundError as error:
        fail(f"{error.name} is not installed; pip install 'rltrain[torch]'")
    except OSError as error:
        if error.filename is None:  # of no file: nothing that another name can mend
            raise
        fail(f"{error.filename}: {error.strerror}; name a place that can be read and written")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def fail(line: str) -> None:
    """Say why, and exit 2."""
    print(f"rltrain: {' '.join(line.split())}", file=sys.stderr)
    raise typer.Exit(2)
