# SPDX-License-Identifier: Apache-2.0
"""``envkit audit``: flags to calls, no logic of its own.

Exit codes: 0 clean, 1 the gate is breached, 2 no run could be read, or ``--strict`` and something
could not, or an argument or output path is wrong.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Annotated, Final, NoReturn

import orjson
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from envkit.audit import SCHEMA, Report, examine
from envkit.audit.html import page
from envkit.audit.read import Item
from envkit.audit.screen import show
from envkit.audit.text import label
from envkit.audit.types import Run

QUIET_S: Final = 2.0
"""Seconds before progress appears: a short audit shows none."""

_FORMS: Final = "Harbor trial directories, ATIF trajectories and OpenAI messages"


def audit(
    directory: Annotated[
        Path | None,
        typer.Argument(help=f"Directory of recorded runs, or one file: {_FORMS}."),
    ] = None,
    json_to: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="Where --json writes; - or nothing is stdout."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write the report as one JSON document."),
    ] = False,
    html_to: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a self-contained page.")
    ] = None,
    report_to: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write audit.json and audit.html to DIR."),
    ] = None,
    fail_over: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Exit 1 when more than this share of runs has an error that is not the model's.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 2 when any candidate could not be read.")
    ] = False,
) -> None:
    """Audit recorded runs: which errors are the environment's, and which rewards they spoiled."""
    try:
        directory, json_to = _untangle(directory, json_to, as_json=as_json)
        gate = None if fail_over is None else _percent(fail_over)
        _check(directory)
        report = _examine(directory)
        _write(report, json_to, html_to, report_to)
    except _Refused as refused:
        _say(str(refused))
        if as_json and json_to in (None, "-"):
            print(orjson.dumps({"schema": SCHEMA, "error": label(str(refused))}).decode())
        raise typer.Exit(2) from None
    raise typer.Exit(_verdict(report, directory, gate, strict=strict))


class _Refused(Exception):
    """The command line asks for what cannot be done; the message says what to do instead."""


def _check(directory: Path) -> None:
    try:
        directory.stat()
    except FileNotFoundError:
        _stop(f"{directory}: no such directory. Give a directory with {_FORMS}.")
    except OSError as error:
        _stop(f"{directory}: {error.strerror}. Give a directory that this user can read.")


def _untangle(
    directory: Path | None, json_to: str | None, *, as_json: bool
) -> tuple[Path, str | None]:
    """What to audit and where JSON goes (None: nowhere), in whichever order they were given."""
    if directory is None:
        _stop("no directory given. Usage: envkit audit DIR")
    if json_to is None:
        return directory, "-" if as_json else None
    if not as_json:
        _stop(f"{json_to}: one directory at a time. A second argument is the file of --json.")
    if not directory.exists() and Path(json_to).is_dir():
        return Path(json_to), str(directory)
    return directory, json_to


def _percent(text: str) -> float:
    """``2%`` or ``2`` as 0.02."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        _stop(f"--fail-over {text}: not a percentage from 0 to 100. Write for example 2%.")
    return value / 100


def _examine(directory: Path) -> Report:
    # The audit reports unknown faults itself; their raw text must not reach the terminal.
    logging.getLogger("envkit.fault").setLevel(logging.ERROR)
    with _Watch() as watch:
        return examine(directory, watch.saw)


class _Watch:
    """Progress on stderr, from `QUIET_S` on and only on a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._terminal = console.is_terminal
        self._task = self._progress.add_task("reading")
        self._since = time.monotonic()
        self._runs = 0

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def saw(self, item: Item) -> None:
        """Count an item."""
        self._runs += isinstance(item, Run)
        if self._terminal and time.monotonic() - self._since > QUIET_S:
            self._progress.start()
            self._progress.update(self._task, description=f"{self._runs} runs read")


def _write(
    report: Report, json_to: str | None, html_to: Path | None, report_to: Path | None
) -> None:
    data = orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2) + b"\n"
    outputs: list[tuple[Path, bytes]] = []
    if report_to is not None:
        outputs += [(report_to / "audit.json", data), (report_to / "audit.html", _html(report))]
    if html_to is not None:
        outputs.append((html_to, _html(report)))
    if json_to is not None and json_to != "-":
        outputs.append((Path(json_to), data))
    for path, content in outputs:
        _save(path, content)
    if json_to == "-":
        sys.stdout.buffer.write(data)
        return
    show(report, Console(highlight=False))
    for path, _ in outputs:
        typer.echo(f"written: {label(str(path))}")


def _html(report: Report) -> bytes:
    return page(report).encode()


def _save(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        _stop(f"{path}: cannot be written: {error.strerror}. Choose another path.")


def _verdict(report: Report, directory: Path, gate: float | None, *, strict: bool) -> int:
    if report.runs == 0:
        _say(f"{directory}: no run could be read. {_nothing(report)}")
        return 2
    if strict and report.unreadable:
        _say(f"{len(report.unreadable)} candidates could not be read, and --strict was given.")
        return 2
    share = report.foreign_share or 0.0
    if gate is not None and share > gate:
        _say(f"FAIL: {100 * share:.2f} % of runs have a foreign error, over {100 * gate:g} %.")
        return 1
    return 0


def _nothing(report: Report) -> str:
    """Why there is nothing to report on."""
    if len(report.unreadable) == 1:
        only = report.unreadable[0]
        return f"{only.file}: {only.reason}."
    return f"It holds no readable {_FORMS}."


def _say(message: str) -> None:
    typer.echo(f"envkit audit: {label(message)}", err=True)


def _stop(message: str) -> NoReturn:
    raise _Refused(message)


if __name__ == "__main__":
    typer.run(audit)
