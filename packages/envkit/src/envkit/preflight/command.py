# SPDX-License-Identifier: Apache-2.0
"""``envkit preflight``: what was asked for, made into a plan, a launcher and a printed report.

Contract: standard output holds the report alone (one JSON document with ``--json``, also when
nothing could be run); progress goes to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from rich.console import Console
from rich.text import Text

from envkit.cli_extras import install_line, require
from envkit.fault import EnvkitError, HarnessError, SandboxUnavailable
from envkit.preflight.place import Place, keep, open_place
from envkit.preflight.plan import KNOWN_ENVS, Request, make_plan
from envkit.preflight.progress import view_for
from envkit.preflight.report import could_not_run
from envkit.preflight.report_json import to_json
from envkit.preflight.report_text import print_report
from envkit.preflight.run import run
from envkit.preflight.text import one_line
from envkit.preflight.types import Launcher, Plan, Report, RunOptions, Verdict

PLAIN_WIDTH: Final = 120
"""Columns where the output is no terminal, so that the same run always prints the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, as it was given."""

    source: Path
    agent: str
    env: str
    concurrency: int
    repeat: int | None
    limit: int | None
    max_fault_rate: str
    """In percent, with or without its sign."""
    seed: int
    as_json: bool
    report_dir: Path | None


def preflight(options: Options) -> int:
    """Runs and prints a preflight; the exit code."""
    token = secrets.token_hex(8)
    logging.getLogger("stamina").setLevel(logging.ERROR)  # the report tells what was run again
    try:
        place = open_place(options.report_dir, token)
    except EnvkitError as error:
        return finish(options, could_not_run([str(error)]), None)
    return finish(options, _run(options, place, token), place)


def _run(options: Options, place: Place, token: str) -> Report:
    try:
        plan = make_plan(_request(options, place, token))
        if not plan.specs:
            return could_not_run(_problems(plan), plan)
        require("harbor", "mcp")  # only the trials' processes import them, and fail one by one
        _check_boxes(plan)
        _check_cache(plan)
        launcher = _launcher(plan)
    except EnvkitError as error:
        return could_not_run([str(error)])
    except ModuleNotFoundError as error:
        return could_not_run([install_line(error, "run")])
    return asyncio.run(_interruptible(plan, launcher))


async def _interruptible(plan: Plan, launcher: Launcher) -> Report:
    """SIGTERM, as a build system sends it, ends a run as Ctrl-C does."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await run(plan, launcher, view_for(Console(stderr=True), len(plan.specs)))


def _request(options: Options, place: Place, token: str) -> Request:
    return Request(
        source=options.source,
        out_dir=place.trials,
        run_token=token,
        agent=options.agent,
        env=options.env,
        concurrency=options.concurrency,
        repeat=options.repeat,
        limit=options.limit,
        max_fault_rate=share("--max-fault-rate", options.max_fault_rate),
        seed=options.seed,
    )


def share(option: str, text: str) -> float:
    """``0.5`` or ``0.5%`` as 0.005.

    Raises:
        HarnessError: it is no percentage from 0 to 100.
    """
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise HarnessError(f"{option} {text}: not a percentage from 0 to 100; write for example 2%")
    return value / 100


def _problems(plan: Plan) -> list[str]:
    return [f"{task.dir}: {problem}" for task in plan.broken for problem in task.problems]


def _check_boxes(plan: Plan) -> None:
    """Raises SandboxUnavailable, with the fix, where the local boxes cannot be made."""
    if plan.env != "local":
        return
    from envkit.sandbox import availability

    boxes = availability()
    if not boxes.ok:
        raise SandboxUnavailable(boxes.line())


def _check_cache(plan: Plan) -> None:
    """Raises HarnessError where nothing could be built that the trials of our boxes share."""
    if plan.env not in KNOWN_ENVS:
        return
    from envkit.sandbox.prepare import cache_directory

    cache = cache_directory()
    for part in (cache / "roots", cache / "worlds"):
        try:
            part.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=part):
                pass
        except OSError as error:
            raise HarnessError(
                f"{part}: the cache cannot be written: {error.strerror}; "
                "name a directory that this user can write in ENVKIT_CACHE"
            ) from error


def _launcher(plan: Plan) -> Launcher:
    from envkit.preflight.launcher import launcher

    return launcher(
        plan.env,
        RunOptions(
            concurrency=plan.concurrency,
            out_dir=plan.out_dir,
            run_token=plan.run_token,
            seed=plan.seed,
        ),
    )


def finish(options: Options, report: Report, place: Place | None) -> int:
    """Keeps and prints a report; the exit code."""
    if place is not None:
        _keep(place, report)
    if options.as_json:
        print(orjson.dumps(to_json(report), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(report, place)
    return report.verdict.exit_code


def _keep(place: Place, report: Report) -> None:
    """A full disk costs the files of a report, not the report."""
    try:
        keep(place, report)
    except OSError as error:
        where = error.filename2 or error.filename or place.root
        line = f"{where}: {error.strerror}; make room, or name another place with --report DIR"
        print(f"envkit: {one_line(line, 1000)}", file=sys.stderr)


def _print(report: Report, place: Place | None) -> None:
    """The report on standard output; that nothing could be run is said on standard error."""
    failed = report.verdict is Verdict.COULD_NOT_RUN
    console = Console(stderr=failed)
    if not console.is_terminal:
        console = Console(stderr=failed, width=PLAIN_WIDTH)
    print_report(report, console)
    if place is not None and place.root.exists() and not failed:
        console.print(Text(f"files  {place.root}"), soft_wrap=True)
