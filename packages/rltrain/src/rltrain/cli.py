# SPDX-License-Identifier: Apache-2.0
"""The command line of rltrain: every command is a function of a module of its own."""

from __future__ import annotations

import sys

import typer

from envkit.usage import USAGE_ERROR, misused
from rltrain import __version__
from rltrain.cli_check import check
from rltrain.cli_export import export
from rltrain.cli_fit import fit
from rltrain.cli_overfit import overfit
from rltrain.cli_plan import plan
from rltrain.cli_report import report
from rltrain.cli_status import status
from rltrain.cli_tiny import tiny_policy

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reinforcement learning on envkit trajectories, recorded or sampled while it trains.",
)


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


for _command in (plan, overfit, check, fit, report, export, status):
    app.command()(_command)
app.command("tiny-policy")(tiny_policy)


def main() -> None:
    """The ``rltrain`` program."""
    try:
        code = app(prog_name="rltrain", standalone_mode=False)
    except USAGE_ERROR as error:
        misused(error, "rltrain")
        code = 2
    sys.exit(code)
