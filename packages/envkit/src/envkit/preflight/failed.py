# SPDX-License-Identifier: Apache-2.0
"""The trials that did not do what their agent must, and how to see each again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from envkit.preflight.gate import EXPECTED, faulted, wrong_reward
from envkit.preflight.logs import log_tail
from envkit.preflight.plan import UNSAFE
from envkit.preflight.soundness import is_unsound
from envkit.preflight.text import one_line
from envkit.preflight.types import FailedTrial, Plan
from envkit.trial.record import TrialRecord
from envkit.trial.request import attempt_name


def reproduce(plan: Plan, task_dir: Path) -> str:
    """The command that runs one task the same way, alone."""
    words = ["envkit", "preflight", str(task_dir), "--agent", plan.agent, "--env", plan.env]
    words += ["--concurrency", "1", "--repeat", "1", "--seed", str(plan.seed)]
    return shlex.join([*words, *_shape(plan, task_dir)])


def _shape(plan: Plan, task_dir: Path) -> list[str]:
    """The options that shaped the load of a task's trials, and the arguments of own parts."""
    spec = next((spec for spec in plan.specs if spec.task_dir == task_dir), None)
    if spec is None:
        return []
    load = spec.load
    words = ["--think-time", load.think] if load.think else []
    words += ["--hold", f"{load.hold_s:g}"] if load.hold_s else []
    words += ["--grade-twice"] if load.grade_twice else []
    named = (("--agent-arg", spec.agent_args), ("--env-arg", spec.env_args))
    pairs = ((option, item) for option, args in named for item in args.items())
    return [*words, *(w for o, (k, v) in pairs for w in (o, f"{k}={json.dumps(v)}"))]


def is_failed(plan: Plan, record: TrialRecord) -> bool:
    """Whether a trial faulted, earned nothing valid, or not what it must."""
    clean = all(not faulted(attempt, attempt is record.attempts[-1]) for attempt in record.attempts)
    earned = record.reward_valid or plan.env == UNSAFE
    return not clean or not earned or wrong_reward(record) or is_unsound(record)


LOGS_SHOWN: Final = 50
"""Trials whose log stands in the report; the logs of hundreds would make it unreadable."""


def failed_trials(plan: Plan, records: Iterable[TrialRecord]) -> tuple[FailedTrial, ...]:
    """All of them, those that were saved by another attempt last; the first ones with logs."""
    failed = sorted((r for r in records if is_failed(plan, r)), key=_is_saved)
    return tuple(
        failed_trial(plan, record, with_log=n < LOGS_SHOWN) for n, record in enumerate(failed)
    )


def failed_trial(plan: Plan, record: TrialRecord, *, with_log: bool = True) -> FailedTrial:
    """Why it failed, the line that runs it again, and the last lines of its logs."""
    place = _place(record)
    broken = {task.name: task for task in plan.broken}.get(record.task)
    return FailedTrial(
        trial_id=record.trial_id,
        task=record.task,
        why=_why(record),
        reproduce=f"envkit lint {shlex.quote(str(broken.dir))}"
        if broken
        else reproduce(plan, _task_dir(plan, record)),
        trial_dir=place,
        log_tail=log_tail(place) if with_log and not broken else (),
    )


def _place(record: TrialRecord) -> Path:
    """The directory of the attempt to look at: of a trial that was saved, the one that faulted."""
    bad = next((a.number for a in record.attempts if a.faults), 0)
    if not _is_saved(record) or not bad:
        return record.trial_dir
    return record.trial_dir.parent / attempt_name(record.trial_id, bad)


def _is_saved(record: TrialRecord) -> bool:
    """In the end it earned what it must."""
    wrong = wrong_reward(record) or is_unsound(record)
    return record.reward_valid and record.fault is None and not wrong


def _why(record: TrialRecord) -> str:
    fault = record.fault or next((f for a in record.attempts for f in a.faults), None)
    if wrong_reward(record) or fault is None:
        return f"{_outcome(record)}{_criteria(record)}"
    where = f"{fault.owner.value} fault {fault.code} in {fault.phase.value}"
    again = f"; run again, {_outcome(record)}" if len(record.attempts) > 1 else ""
    return f"{where}: {one_line(fault.message, 500)}{again}"


def _criteria(record: TrialRecord) -> str:
    """The verifier's own criteria that came out otherwise than they must."""
    expected = EXPECTED.get(record.agent)
    named = record.attempts[-1].rewards.items()
    off = [f"{k} {v:g}" for k, v in named if k != "reward" and expected not in (None, v)]
    return f" ({one_line(', '.join(off), 300)})" if off else ""


def _outcome(record: TrialRecord) -> str:
    if is_unsound(record):
        return "the same files, graded again, did not earn the same"
    return f"earned {record.reward:g}" if record.reward is not None else "no reward"


def _task_dir(plan: Plan, record: TrialRecord) -> Path:
    return next(s.task_dir for s in plan.specs if s.trial_id == record.trial_id)
