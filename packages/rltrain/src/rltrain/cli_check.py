# SPDX-License-Identifier: Apache-2.0
"""``rltrain check``: flags to a call, progress while it runs, one line where it cannot."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from rltrain.cli_edge import edge
from rltrain.gates.options import Options

if TYPE_CHECKING:
    from rltrain.gates.check import Progress
    from rltrain.gates.report import Report
    from rltrain.gates.survey import Told

DEFAULT: Final = Options(store=Path(), policy=Path())
PATIENCE_S: Final = 2.0
"""After which it is shown how far it is."""


def check(
    store: Annotated[
        Path, typer.Argument(metavar="TRAJ", help="A trajectory store, or a run's directory.")
    ],
    policy: Annotated[
        Path, typer.Option(metavar="DIR", help="The checkpoint that is said to have sampled them.")
    ],
    version: Annotated[
        int | None,
        typer.Option(
            metavar="V",
            help="Version of the weights whose tokens are compared. Default: the one of most.",
        ),
    ] = None,
    tokens: Annotated[
        int, typer.Option(min=1, help="Tokens to compare, about, evenly over the store.")
    ] = DEFAULT.tokens,
    limit: Annotated[
        float, typer.Option(min=0.0, help="Mean difference at most, in nats.")
    ] = DEFAULT.limit,
    least: Annotated[
        int, typer.Option(min=1, help="Comparable tokens below which it is not measured.")
    ] = DEFAULT.least,
    dtype: Annotated[
        Literal["float32", "bfloat16"], typer.Option(help="What the trainer computes in.")
    ] = "float32",
    micro_batch_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens that are scored at once.")
    ] = DEFAULT.micro_batch_tokens,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all of it as one JSON document.")
    ] = False,
) -> None:
    """Compare the trainer's log-probs with those that the engine recorded.

    Exits 0 where they agree, 1 where they do not or too little was measured, 2 where it could not
    be run.
    """
    with edge():
        from rltrain.gates import check as gate

        options = Options(
            store=store,
            policy=policy,
            version=version,
            tokens=tokens,
            limit=limit,
            least=least,
            dtype=dtype,
            micro_batch_tokens=micro_batch_tokens,
        )
        with _bars() as progress:
            report = gate.check(options, progress)
        _print(report, as_json)
    raise typer.Exit(report.exit_code)


def _print(report: Report, as_json: bool) -> None:
    from envkit.preflight.consoles import report_console
    from rltrain.gates.report import document
    from rltrain.gates.show import show

    if as_json:
        print(json.dumps(document(report), ensure_ascii=False))
    else:
        show(report, report_console(highlight=False))


@contextmanager
def _bars() -> Generator[Progress]:
    """Bars on standard error for what takes long; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def progress(what: str) -> Told:
        task = bars.add_task(what, total=None)
        return lambda done, of: bars.update(task, completed=done, total=of)

    patience = threading.Timer(PATIENCE_S, bars.start)
    patience.start()
    try:
        yield progress
    finally:
        patience.cancel()
        patience.join()
        bars.stop()
