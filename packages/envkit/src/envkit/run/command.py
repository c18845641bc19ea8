# SPDX-License-Identifier: Apache-2.0
"""``envkit run``: what was asked for, made into trajectories and a printed report.

Contract: standard output holds the report alone (one JSON document with ``--json``, also when
nothing could be run); progress goes to standard error. A run that was killed goes on with
``--resume`` from what is durable: no trial that ended is repeated, none is lost.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import orjson
from rich.console import Console
from rich.text import Text

from envkit.agent.settings import ModelSettings
from envkit.agent.warm import voice_of
from envkit.cli_extras import install_line, require
from envkit.fault import EnvkitError
from envkit.preflight.amended import Amend, Amended
from envkit.preflight.asked import Asked
from envkit.preflight.begin import check_machine
from envkit.preflight.consoles import report_console
from envkit.preflight.engine import engine_for
from envkit.preflight.interrupt import interruptible
from envkit.preflight.journal import Journal
from envkit.preflight.launcher import launcher_of
from envkit.preflight.outputs import write_whole
from envkit.preflight.past import Past
from envkit.preflight.place import keep, release
from envkit.preflight.progress import view_for
from envkit.preflight.report import could_not_run
from envkit.preflight.run import run
from envkit.preflight.text import count, one_line
from envkit.preflight.types import Plan, Verdict
from envkit.run.begin import COMMAND, STORE, Start, begin, leave, past_of, plan_of
from envkit.run.events import Events
from envkit.run.options import Options, serve
from envkit.run.report import RunReport, document, show
from envkit.run.rows import Ground, ground_of, keep_tokenizer
from envkit.run.sink import Sink
from envkit.run.storing import Storing
from envkit.run.weights import digest_for
from envkit.trajectory.writer import Writer


def rollouts(options: Options) -> int:
    """Runs and prints; the exit code."""
    logging.getLogger("stamina").setLevel(logging.ERROR)  # the report tells what was run again
    try:
        start = begin(options)
    except EnvkitError as error:
        return _finish(options, RunReport(trials=could_not_run([str(error)])), None)
    try:
        return _finish(start.options, _run(start), start)
    finally:
        leave(start)
        release(start.place)


def _run(start: Start) -> RunReport:
    try:
        plan = plan_of(start)
        if not plan.specs:
            problems = [f"{task.dir}: {line}" for task in plan.broken for line in task.problems]
            return RunReport(trials=could_not_run(problems, plan))
        require("harbor", "mcp")  # only the trials' processes import them, and fail one by one
        check_machine(plan.env)
        before = past_of(start, plan) if start.resumes else None
        with _engine(start, plan, before) as amend:
            digest = _weights(start, plan, before, amend)
            asked, past = before or past_of(start, plan, digest)
            ground = _ground(start, plan, asked.tasks, digest)
            return _trials(start, plan, past, ground, amend)
    except EnvkitError as error:
        return RunReport(trials=could_not_run([str(error)]))
    except ModuleNotFoundError as error:
        return RunReport(trials=could_not_run([install_line(error, "run")]))


def _weights(start: Start, plan: Plan, before: tuple[Asked, Past] | None, amend: Amend) -> str:
    """Of what the engine samples with; there is none where every trial has ended."""
    if start.resumes and before and not before[1].remaining(plan):
        return start.resumes.model_digest
    return digest_for(plan, amend, start.resumes)


def _ground(start: Start, plan: Plan, digests: Mapping[str, str], model_digest: str) -> Ground:
    settings = ModelSettings.read(**plan.specs[0].agent_args)
    voice = voice_of(settings)
    keep_tokenizer(start.place.root, voice)
    tasks = {spec.trial_id: digests[str(spec.task_dir)] for spec in plan.specs}
    return ground_of(settings, voice, tasks, model_digest)


def _trials(start: Start, plan: Plan, past: Past, ground: Ground, amend: Amend) -> RunReport:
    """Store what ended before, then run what remains."""
    root = start.place.root
    journal = Journal(root, cut_off=past.cut_off, command=COMMAND)
    events = Events(start.options.events, start.run_token)
    view = view_for(Console(stderr=True), len(past.remaining(plan)))
    try:
        with Writer.open(root / STORE, clock=time.monotonic) as writer:
            sink = Sink(writer, ground, events)
            if stored := sink.catch_up(past.records.values()):
                view.notice(f"stored {count(stored, 'trial')} that had ended before the kill")
            inner = Storing(Amended(launcher_of(plan, past), amend), sink)
            work = run(plan, inner, view, past=past, journal=journal)
            report = asyncio.run(interruptible(work))
        return RunReport(trials=report, figures=sink.figures, damage=tuple(sink.damage))
    finally:
        events.close()
        journal.close()


def _engine(
    start: Start, plan: Plan, before: tuple[Asked, Past] | None
) -> AbstractContextManager[Amend]:
    """None is needed where every trial has ended."""
    if before and not before[1].remaining(plan):
        return nullcontext(lambda spec: spec)
    return engine_for(plan, serve(start.options, start.place.root))


def _finish(options: Options, report: RunReport, start: Start | None) -> int:
    """Keeps and prints a report; the exit code."""
    text = orjson.dumps(document(report), option=orjson.OPT_INDENT_2)
    verdict = report.trials.verdict
    if start is not None and verdict is not Verdict.COULD_NOT_RUN:
        _keep(start, report, text)
    if options.as_json:
        print(text.decode())
    else:
        _print(report, start)
    return verdict.exit_code


def _keep(start: Start, report: RunReport, text: bytes) -> None:
    """A full disk costs the files of a report, not the report."""
    try:
        keep(start.place, report.trials)
        write_whole(start.place.root / "report.json", text + b"\n")
    except OSError as error:
        line = f"{error.filename or start.place.root}: {error.strerror}; the report is not kept"
        print(f"envkit: {one_line(line, 1000)}", file=sys.stderr)


def _print(report: RunReport, start: Start | None) -> None:
    """The report on standard output; that nothing could be run is said on standard error."""
    failed = report.trials.verdict is Verdict.COULD_NOT_RUN
    console = report_console(stderr=failed)
    show(report, console)
    if start is None or failed:
        return
    root = start.place.root
    console.print(Text(f"files  {root}"), soft_wrap=True)
    if report.trials.verdict is Verdict.INTERRUPTED:
        line = shlex.join(["envkit", COMMAND, "--resume", str(root)])
        console.print(Text(f"resume {line}"), soft_wrap=True)
