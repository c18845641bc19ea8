# SPDX-License-Identifier: Apache-2.0
"""Where commands meet the user: what was named, and what went wrong in one line.

Contract: what a user can set right is one line on standard error and exit 2, never a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import typer

from envkit.cli_extras import install_line


@contextmanager
def edge(extra: str) -> Generator[None]:
    """Turns what a user can set right into one line, and Ctrl-C into its exit code."""
    from envkit.fault import EnvkitError

    try:
        yield
    except EnvkitError as error:
        fail(str(error))
    except ModuleNotFoundError as error:
        fail(install_line(error, extra))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def fail(line: str) -> NoReturn:
    """One line on standard error, exit 2."""
    print(f"envkit: {' '.join(line.split())}", file=sys.stderr)
    raise typer.Exit(2)


def named(context: typer.Context, fields: Mapping[str, str]) -> frozenset[str]:
    """Which options were named, also with the value they have by default.

    ``fields`` are parameters that go by another name.
    """
    return frozenset(
        fields.get(name, name)
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT"
    )
