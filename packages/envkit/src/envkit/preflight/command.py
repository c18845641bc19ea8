# SPDX-License-Identifier: Apache-2.0
"""``envkit preflight``: what was asked for, made into a plan, a launcher and a printed report.

Contract: standard output holds the report alone (one JSON document with ``--json``, also when
nothing could be run); progress goes to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shlex
import sys
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.text import Text

from envkit.cli_extras import install_line, require
from envkit.fault import EnvkitError, HarnessError, SandboxUnavailable
from envkit.preflight.again import (
    check_unchanged,
    failed_trials,
    only,
    rerun,
    resumed,
    to_keep,
)
from envkit.preflight.asked import Asked, as_asked, read_asked, write_asked
from envkit.preflight.chaos.command import arm, score_chaos
from envkit.preflight.interrupt import interruptible
from envkit.preflight.journal import Journal
from envkit.preflight.measures import Measures, read_measures
from envkit.preflight.outputs import check_outputs, write_outputs
from envkit.preflight.past import NOTHING, Past, take_up
from envkit.preflight.place import Place, keep, open_place, release, reopen_place
from envkit.preflight.plan import KNOWN_ENVS, Request, make_plan
from envkit.preflight.progress import view_for
from envkit.preflight.ramp import parse_levels, plans_of, run_ramp, whole
from envkit.preflight.report import could_not_run
from envkit.preflight.report_json import to_json
from envkit.preflight.report_text import PLAIN_WIDTH, print_report
from envkit.preflight.run import run
from envkit.preflight.text import one_line, share
from envkit.preflight.types import Launcher, Plan, Report, RunOptions, Verdict, View


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
    think_time: str = ""
    """``recorded``, ``recorded*0.1``, ``lognormal:MEDIAN_S,SIGMA`` or seconds."""
    hold: float = 0.0
    """Seconds."""
    grade_twice: bool = False
    starts_per_s: float | None = None
    turns: int | None = None
    agent_arg: tuple[str, ...] = ()
    """``name=value``"""
    env_arg: tuple[str, ...] = ()
    resume: Path | None = None
    """The directory of a run that was killed, to go on with."""
    rerun_failed: Path | None = None
    """The directory of a run, to run again what failed in it."""
    ramp: str | None = None
    """Concurrencies, lowest first; instead of one."""
    baseline: Path | None = None
    """A report, or its directory, to compare with."""
    max_slowdown: str | None = None
    """In percent: beyond it a comparison breaches the gate."""
    estimate: str | None = None
    """``steps=200,prompts=16,samples=16``."""
    junit: Path | None = None
    markdown: Path | None = None
    quarantine: Path | None = None
    chaos: Path | None = None
    """Faults to inject, as `envkit.preflight.chaos.rules` reads them."""
    score_chaos: Path | None = None
    """The directory of a run with ``chaos``; scored in place of a run."""
    given: frozenset[str] = frozenset()
    """Which of these were named on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Where a run begins, and from what."""

    options: Options
    place: Place
    run_token: str
    resumes: Asked | None = None
    """The same run, as it was asked for when it began."""
    rerun_of: Path | None = None
    """The directory of another run, of which only ``trials`` are run again."""
    trials: frozenset[str] = frozenset()
    concurrency: int | None = None
    """Where it is not that of the options, which the ids come from."""


def preflight(options: Options) -> int:
    """Runs and prints a preflight; the exit code."""
    logging.getLogger("stamina").setLevel(logging.ERROR)  # the report tells what was run again
    if options.score_chaos is not None:
        return _score(options, options.score_chaos)
    try:
        check_outputs(_outputs(options))
    except EnvkitError as error:
        nowhere = replace(options, junit=None, markdown=None, quarantine=None)
        return finish(nowhere, could_not_run([str(error)]), None)
    try:
        measures = _measures(options)
        start = _start(options)
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
    if options.ramp and "concurrency" in options.given:
        raise HarnessError("--ramp and --concurrency: a ramp names its own; name one")
    if options.ramp and options.chaos:
        raise HarnessError("--ramp and --chaos: a ramp measures sound trials; name one")
    _levels(options)
    return read_measures(
        baseline=options.baseline, max_slowdown=options.max_slowdown, training=options.estimate
    )


def _levels(options: Options) -> tuple[int, ...]:
    return parse_levels(options.ramp) if options.ramp is not None else ()


def _outputs(options: Options) -> dict[str, Path | None]:
    return {
        "junit": options.junit,
        "markdown": options.markdown,
        "quarantine": options.quarantine,
    }


def _start(options: Options) -> _Start:
    """Takes the place of a run; of one that was killed, once nothing of it lives any more."""
    if options.resume and options.rerun_failed:
        raise HarnessError("--resume and --rerun-failed: a run goes on, or is another; name one")
    if options.resume:
        return _resume(options, options.resume)
    token = secrets.token_hex(8)
    if options.rerun_failed:
        asked = read_asked(options.rerun_failed)
        failed = failed_trials(options.rerun_failed, asked)
        return _Start(
            options=rerun(options, options.given, asked),
            place=open_place(_other(options), token),
            run_token=token,
            rerun_of=options.rerun_failed.resolve(),
            trials=failed,
            concurrency=options.concurrency if "concurrency" in options.given else None,
        )
    return _Start(options=options, place=open_place(options.report_dir, token), run_token=token)


def _resume(options: Options, root: Path) -> _Start:
    asked = read_asked(root)
    if options.report_dir and options.report_dir.resolve() != root.resolve():
        raise HarnessError(
            f"--report {options.report_dir}: the run goes on in {root}; leave it out"
        )
    place = reopen_place(root)
    try:
        before = resumed(options, options.given, asked)
        if before.ramp:
            raise HarnessError(f"{root}: a ramp measures whole levels; start it anew")
        _bury(asked.run_token)
    except BaseException:
        release(place)
        raise
    return _Start(
        options=before,
        place=place,
        run_token=asked.run_token,
        resumes=asked,
        rerun_of=asked.rerun_of,
        trials=frozenset(asked.trials),
        concurrency=asked.concurrency,
    )


def _bury(run_token: str) -> None:
    """Removes what a killed run left, before its token is used again."""
    from envkit.sandbox.reaper import reap_run

    if left := reap_run(run_token):
        raise HarnessError(
            f"{left[0].kind} {left[0].what}: left by the killed run, and cannot be removed by "
            "this user; end it, then resume"
        )


def _other(options: Options) -> Path | None:
    """Where a run of what failed goes: never over the run it is of."""
    mine, other = options.report_dir, options.rerun_failed
    if mine and other and mine.resolve() == other.resolve():
        raise HarnessError(f"--report {mine}: holds the run whose failed trials these are")
    return mine


def _run(start: _Start, measures: Measures) -> Report:
    try:
        plan, levels = _plan(start)
        if not plan.specs:
            return could_not_run(_problems(plan), plan)
        require("harbor", "mcp")  # only the trials' processes import them, and fail one by one
        _check_boxes(plan)
        _check_cache(plan)
        measures.check(plan, levels)
        past = _past(start, plan)
        launcher = _launcher(plan, past, _armed(start, plan))
    except EnvkitError as error:
        return could_not_run([str(error)])
    except ModuleNotFoundError as error:
        return could_not_run([install_line(error, "run")])
    journal = Journal(start.place.root, cut_off=past.cut_off, resumable=not levels)
    try:
        if levels:
            return asyncio.run(interruptible(_ramp(plan, levels)))
        view = _view(plan, past)
        return asyncio.run(interruptible(run(plan, launcher, view, past=past, journal=journal)))
    finally:
        journal.close()


def _plan(start: _Start) -> tuple[Plan, tuple[Plan, ...]]:
    """The trials of a run; of a ramp, those of each level too."""
    plan = make_plan(_request(start.options, start.place, start.run_token))
    plan = replace(plan, chaos=start.options.chaos)
    at = _levels(start.options)
    levels = plans_of(plan, at, start.options.repeat) if at and plan.specs else ()
    plan = whole(plan, levels) if levels else plan
    if start.rerun_of is not None:
        plan, levels = only(plan, start.trials, start.rerun_of), ()
    return replace(plan, concurrency=start.concurrency) if start.concurrency else plan, levels


def _past(start: _Start, plan: Plan) -> Past:
    """What is done of a run; of a new one nothing, and what was asked is kept first."""
    root, asked = start.place.root, as_asked(plan, to_keep(start.options))
    if start.resumes is None:
        write_asked(root, asked)
        return NOTHING
    check_unchanged(root, start.resumes, asked)
    try:
        return take_up(root, start.place.trials, plan)
    except OSError as error:
        raise HarnessError(f"{error.filename}: {error.strerror}; cannot be moved aside") from error


def _view(plan: Plan, past: Past = NOTHING) -> View:
    return view_for(Console(stderr=True), len(past.remaining(plan)))


def _ramp(plan: Plan, levels: tuple[Plan, ...]) -> Coroutine[Any, Any, Report]:
    return run_ramp(plan, levels, partial(_launcher, past=NOTHING), _view)


def _request(options: Options, place: Place, token: str) -> Request:
    return Request(
        source=options.source,
        out_dir=place.trials,
        run_token=token,
        agent=options.agent,
        env=options.env,
        concurrency=max(_levels(options), default=options.concurrency),
        repeat=options.repeat,
        limit=options.limit,
        max_fault_rate=share("--max-fault-rate", options.max_fault_rate),
        seed=options.seed,
        think=options.think_time,
        hold_s=options.hold,
        grade_twice=options.grade_twice,
        starts_per_s=options.starts_per_s,
        turns=options.turns,
        agent_args=options.agent_arg,
        env_args=options.env_arg,
    )


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


def _armed(start: _Start, plan: Plan) -> Path | None:
    """Where it stands what strikes which trial; None where nothing does."""
    rules = start.options.chaos
    if rules is None:
        return None
    root = start.place.root if start.place.asked_for else None
    return arm(rules, plan, root, resumed=start.resumes is not None)


def _launcher(plan: Plan, past: Past, chaos: Path | None = None) -> Launcher:
    from envkit.preflight.launcher import launcher

    return launcher(
        plan.env,
        RunOptions(
            concurrency=plan.concurrency,
            out_dir=plan.out_dir,
            run_token=plan.run_token,
            seed=plan.seed,
            starts_per_s=plan.starts_per_s,
            turns=plan.turns,
            earlier=past.earlier,
            chaos=chaos,
        ),
    )


def finish(options: Options, report: Report, place: Place | None) -> int:
    """Keeps and prints a report; the exit code."""
    if place is not None:
        _told(partial(keep, place, report), place.root, "--report DIR")
    _told(partial(write_outputs, _outputs(options), report), Path(), "its option")
    if options.as_json:
        print(orjson.dumps(to_json(report), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(report, place)
    return report.verdict.exit_code


def _told(write: Callable[[], None], where: Path, other: str) -> None:
    """A full disk costs the files of a report, not the report."""
    try:
        write()
    except OSError as error:
        path = error.filename2 or error.filename or where
        line = f"{path}: {error.strerror}; make room, or name another place with {other}"
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
        if report.verdict is Verdict.INTERRUPTED and report.ramp is None:
            line = shlex.join(["envkit", "preflight", "--resume", str(place.root)])
            console.print(Text(f"resume {line}"), soft_wrap=True)
