# SPDX-License-Identifier: Apache-2.0
"""The command line of rltrain, with the names of commands that are not built yet.

Contract: ``--help`` says of each what it does or that it is not built; calling one that is not
prints one line on stderr and exits 2, the code of "could not run", so that no script mistakes it
for a finished training step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType

import typer

from envkit.usage import USAGE_ERROR, misused
from rltrain import __version__
from rltrain.cli_check import check
from rltrain.cli_export import export
from rltrain.cli_fit import fit
from rltrain.cli_report import report
from rltrain.cli_tiny import tiny_policy

PLANNED: Mapping[str, str] = MappingProxyType(
    {
        "overfit": "prove that a few tasks can be learned first",
        "plan": "say what bounds a run before a GPU is rented",
        "status": "say where a run stands",
    }
)
"""Commands that are not built yet, and what each will do."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reinforcement learning on envkit trajectories; so far on recorded ones.",
)


def not_built(name: str) -> Callable[[], None]:
    """A command that says in one line that it does not exist yet."""

    def command() -> None:
        typer.echo(f"rltrain {name}: not built yet in rltrain {__version__}", err=True)
        raise typer.Exit(2)

    return command


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rltrain {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options that come before a command."""


for _command in (check, fit, report, export):
    app.command()(_command)
app.command("tiny-policy")(tiny_policy)
for _name, _purpose in PLANNED.items():
    app.command(_name, help=f"Not built yet: {_purpose}.")(not_built(_name))


def main() -> None:
    """The ``rltrain`` program."""
    try:
        code = app(prog_name="rltrain", standalone_mode=False)
    except USAGE_ERROR as error:
        misused(error, "rltrain")
        code = 2
    sys.exit(code)
