# SPDX-License-Identifier: Apache-2.0
"""``envkit preflight``: what was asked for, made into a plan, a launcher and a printed report.

Contract: standard output holds the report alone (one JSON document with ``--json``, also when
nothing could be run); progress goes to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.text import Text

from envkit.cli_extras import install_line, require
from envkit.fault import EnvkitError
from envkit.preflight.amended import Amend, Amended
from envkit.preflight.begin import Start, armed, begin, check_machine, past_of, plan_of
from envkit.preflight.chaos.command import score_chaos
from envkit.preflight.consoles import report_console
from envkit.preflight.interrupt import interruptible
from envkit.preflight.journal import Journal
from envkit.preflight.measures import Measures, read_measures
from envkit.preflight.options import Options, check, outputs, resumes
from envkit.preflight.outputs import check_outputs, write_outputs
from envkit.preflight.past import NOTHING, Past
from envkit.preflight.place import Place, keep, release
from envkit.preflight.progress import view_for
from envkit.preflight.ramp import run_ramp
from envkit.preflight.report import could_not_run
from envkit.preflight.report_json import to_json
from envkit.preflight.report_text import print_report
from envkit.preflight.run import run
from envkit.preflight.text import one_line
from envkit.preflight.types import Launcher, Plan, Report, Verdict, View
from envkit.trial import policy


def preflight(options: Options) -> int:
    """Runs and prints a preflight; the exit code."""
    logging.getLogger("stamina").setLevel(logging.ERROR)  # the report tells what was run again
    if options.score_chaos is not None:
        return _score(options, options.score_chaos)
    try:
        check_outputs(outputs(options))
    except EnvkitError as error:
        nowhere = replace(options, junit=None, markdown=None, quarantine=None)
        return finish(nowhere, could_not_run([str(error)]), None)
    try:
        measures = _measures(options)
        start = begin(options)
    except EnvkitError as error:
        return finish(options, could_not_run([str(error)]), None)
    try:
        report = measures.of(_run(start, measures))
        unchanged = start.resumes is not None and report.verdict is Verdict.COULD_NOT_RUN
        return finish(start.options, report, None if unchanged else start.place)
    finally:
        release(start.place)


def _score(options: Options, directory: Path) -> int:
    try:
        return score_chaos(directory, as_json=options.as_json)
    except EnvkitError as error:
        return finish(options, could_not_run([str(error)]), None)


def _measures(options: Options) -> Measures:
    """What is made of the run, read before its place is: that may be where the baseline lies."""
    check(options)
    return read_measures(
        baseline=options.baseline, max_slowdown=options.max_slowdown, training=options.estimate
    )


def _run(start: Start, measures: Measures) -> Report:
    try:
        plan, levels = plan_of(start)
        if not plan.specs:
            return could_not_run(_problems(plan), plan)
        require("harbor", "mcp")  # only the trials' processes import them, and fail one by one
        check_machine(plan.env)
        measures.check(plan, levels)
        past = past_of(start, plan)
        launcher = _launcher(plan, past, armed(start, plan))
    except EnvkitError as error:
        return could_not_run([str(error)])
    except ModuleNotFoundError as error:
        return could_not_run([install_line(error, "run")])
    resumable = resumes(start.options)
    journal = Journal(start.place.root, cut_off=past.cut_off, resumable=resumable)
    try:
        with _engine(plan, start) as amend:
            if levels:
                return asyncio.run(interruptible(_ramp(plan, levels, amend)))
            work = run(
                plan, Amended(launcher, amend), _view(plan, past), past=past, journal=journal
            )
            return asyncio.run(interruptible(work))
    except EnvkitError as error:
        return could_not_run([str(error)])
    finally:
        journal.close()


def _engine(plan: Plan, start: Start) -> AbstractContextManager[Amend]:
    """The engine that the trials ask, where they do."""
    if plan.agent != policy.NAME:
        return nullcontext(lambda spec: spec)
    from envkit.preflight.engine import Serve, engine_for  # what it imports, no other agent needs

    log = start.place.root / "engine.log"
    return engine_for(plan, Serve(log=log, python=start.options.engine_python))


def _view(plan: Plan, past: Past = NOTHING) -> View:
    return view_for(Console(stderr=True), len(past.remaining(plan)))


def _ramp(plan: Plan, levels: tuple[Plan, ...], amend: Amend) -> Coroutine[Any, Any, Report]:
    def launcher(level: Plan) -> Launcher:
        return Amended(_launcher(level, NOTHING), amend)

    return run_ramp(plan, levels, launcher, _view)


def _problems(plan: Plan) -> list[str]:
    return [f"{task.dir}: {problem}" for task in plan.broken for problem in task.problems]


def _launcher(plan: Plan, past: Past, chaos: Path | None = None) -> Launcher:
    from envkit.preflight.launcher import launcher_of

    return launcher_of(plan, past, chaos)


def finish(options: Options, report: Report, place: Place | None) -> int:
    """Keeps and prints a report; the exit code."""
    if place is not None:
        _told(partial(keep, place, report), place.root, "--report DIR")
    _told(partial(write_outputs, outputs(options), report), Path(), "its option")
    if options.as_json:
        print(orjson.dumps(to_json(report), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(report, place, resumable=resumes(options))
    return report.verdict.exit_code


def _told(write: Callable[[], None], where: Path, other: str) -> None:
    """A full disk costs the files of a report, not the report."""
    try:
        write()
    except OSError as error:
        path = error.filename2 or error.filename or where
        line = f"{path}: {error.strerror}; make room, or name another place with {other}"
        print(f"envkit: {one_line(line, 1000)}", file=sys.stderr)


def _print(report: Report, place: Place | None, *, resumable: bool) -> None:
    """The report on standard output; that nothing could be run is said on standard error."""
    failed = report.verdict is Verdict.COULD_NOT_RUN
    console = report_console(stderr=failed)
    print_report(report, console)
    if place is not None and place.root.exists() and not failed:
        console.print(Text(f"files  {place.root}"), soft_wrap=True)
        if report.verdict is Verdict.INTERRUPTED and resumable:
            line = shlex.join(["envkit", "preflight", "--resume", str(place.root)])
            console.print(Text(f"resume {line}"), soft_wrap=True)
