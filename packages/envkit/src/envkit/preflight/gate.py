# SPDX-License-Identifier: Apache-2.0
"""PASS or FAIL, and why.

Contract: pure; every breach is one line with its number, and a PASS says what held. The fault
rate is compared by its point, because its upper bound could only hold after some 770 clean
attempts; the bound is printed beside it so that nobody reads "0 of 6" as "never". An attempt
that was run again is a fault even when the next one earned the reward: in training it cost a slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from envkit.fault import Owner
from envkit.preflight.plan import UNSAFE
from envkit.preflight.soundness import held, unsound
from envkit.preflight.text import count, one_line, percent
from envkit.preflight.types import LEAK_NAMES, Interval, Leftover, Plan
from envkit.trial.record import Attempt, TrialRecord

EXPECTED: Final = {"replay": 1.0, "oracle": 1.0, "nop": 0.0}
"""What a sound task pays each of our agents; other agents are held to no reward."""
TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the gate looks at."""

    plan: Plan
    records: Sequence[TrialRecord]
    fault_rate: Interval
    peak_live: int
    leaks: Sequence[Leftover]
    broke: str = ""
    """How the launcher itself died, if it did."""
    interrupted: bool = False


def faulted(attempt: Attempt, last: bool) -> bool:
    """Whether an attempt counts against the fault rate: all but the model's own faults do."""
    return not last or any(fault.owner is not Owner.MODEL for fault in attempt.faults)


def count_faulted(records: Iterable[TrialRecord]) -> tuple[int, int]:
    """(faulted attempts, attempts)."""
    judged = [
        faulted(attempt, attempt is record.attempts[-1])
        for record in records
        for attempt in record.attempts
    ]
    return sum(judged), len(judged)


def breaches(found: Findings) -> tuple[str, ...]:
    """Every gate that does not hold, in the order a person should look at them."""
    lines = (
        f"the launcher died: {found.broke}" if found.broke else "",
        _broken_tasks(found.plan),
        _unsafe(found.plan),
        _faults(found),
        _wrong_rewards(found),
        _impossible_rewards(found.records),
        *unsound(found.records),
        _no_reward(found),
        _peak(found),
        _leaks(found.leaks),
    )
    return tuple(line for line in lines if line)


def summary(found: Findings) -> tuple[str, ...]:
    """What held, for a PASS."""
    expected, trials = EXPECTED.get(found.plan.agent), len(found.records)
    earned = "" if expected is None else f" with reward {expected:.1f} everywhere"
    allowed = f", {percent(found.plan.max_fault_rate)} allowed" if found.plan.gated else ""
    return (
        f"{count(trials, 'trial')}{earned}, {found.peak_live} at once",
        f"fault rate {rate_line(found.fault_rate)}{allowed}",
        *held(found.records),
        "nothing left behind",
    )


def rate_line(rate: Interval) -> str:
    """``0 % (95 % Wilson interval 0 % to 5.66 %)``."""
    return (
        f"{percent(rate.value)} (95 % Wilson interval {percent(rate.low)} to {percent(rate.high)})"
    )


def wrong_reward(record: TrialRecord) -> bool:
    """Whether a trial's valid reward is not the one its agent must earn."""
    expected = EXPECTED.get(record.agent)
    return (
        expected is not None
        and record.reward_valid
        and record.reward is not None
        and abs(record.reward - expected) > TOLERANCE
    )


def _broken_tasks(plan: Plan) -> str:
    if not plan.broken:
        return ""
    names = ", ".join(one_line(task.name, 60) for task in plan.broken)
    return f"{count(len(plan.broken), 'task')} failed the static checks and did not run: {names}"


def _unsafe(plan: Plan) -> str:
    if plan.env != UNSAFE:
        return ""
    return f"--env {UNSAFE} isolates nothing, so no reward of it is valid; it is for debugging"


def _faults(found: Findings) -> str:
    rate, allowed = found.fault_rate, found.plan.max_fault_rate
    if rate.value is None or rate.value <= allowed or not found.plan.gated:
        return ""
    bad, n = count_faulted(found.records)
    return f"{bad} of {count(n, 'attempt')} faulted: {rate_line(rate)}, {percent(allowed)} allowed"


def _wrong_rewards(found: Findings) -> str:
    wrong = Counter(record.task for record in found.records if wrong_reward(record))
    if not wrong:
        return ""
    expected = EXPECTED[found.plan.agent]
    tasks = ", ".join(f"{one_line(task, 60)} ({n})" for task, n in sorted(wrong.items()))
    return (
        f"{count(wrong.total(), 'trial')} did not earn the {expected:.1f} "
        f"that {found.plan.agent} must earn: {tasks}"
    )


def _impossible_rewards(records: Sequence[TrialRecord]) -> str:
    """Whatever the agent: means, bounds and advantages take a reward for a share."""
    off = [
        (record.task, record.reward)
        for record in records
        if record.reward is not None and not 0 <= record.reward <= 1
    ]
    if not off:
        return ""
    tasks = ", ".join(f"{one_line(task, 60)} ({reward:g})" for task, reward in dict(off).items())
    return (
        f"{count(len(off), 'trial')} earned a reward outside 0 to 1, a problem of the task: "
        f"{tasks}; correct its tests/"
    )


def _no_reward(found: Findings) -> str:
    """A missing reward that no fault accounts for is a hole in the record."""
    silent = [r for r in found.records if not r.reward_valid and r.fault is None]
    if found.plan.env == UNSAFE:
        return ""
    if silent:
        return f"{count(len(silent), 'trial')} without a valid reward and without a fault"
    if (
        found.records
        and not found.interrupted
        and not any(record.reward_valid for record in found.records)
    ):
        return "no trial earned a valid reward"
    return ""


def _peak(found: Findings) -> str:
    """A run that never reached its concurrency has not shown that it holds there."""
    wanted = min(found.plan.concurrency, len(found.plan.specs))
    bad, _ = count_faulted(found.records)
    held = found.peak_live + bad >= wanted or not found.plan.gated
    if found.interrupted or held or found.plan.env == UNSAFE:
        return ""
    return f"only {found.peak_live} of {wanted} trials were live at once"


def _leaks(leaks: Sequence[Leftover]) -> str:
    kinds = Counter(leak.kind for leak in leaks)
    if not kinds:
        return ""
    parts = ", ".join(
        f"{n} {kind if n == 1 else LEAK_NAMES.get(kind, kind)}" for kind, n in sorted(kinds.items())
    )
    return f"left behind: {parts}; what is still there goes with: envkit doctor --reap"
