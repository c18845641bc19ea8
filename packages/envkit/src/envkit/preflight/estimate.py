# SPDX-License-Identifier: Apache-2.0
"""What a training run would take: hours, sandbox-hours, attempts.

Contract: pure, deterministic for a seed, out of what the preflight's trials took at its
concurrency. ``hours`` plays steps: the step's trials are drawn from the measured ones and fill the
slots in turn, and the next step begins when the last has ended. ``hours_async`` is trials times
mean seconds by slots. Intervals are bootstraps over the measured trials, Wilson's for shares. The
model's own time is in it only as far as the preflight's load put it there, and so is the machine's.
"""

from __future__ import annotations

import heapq
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from envkit.fault import HarnessError
from envkit.preflight.slots import box_s, slot_s
from envkit.preflight.stats import quantile, rate
from envkit.preflight.text import count
from envkit.preflight.types import Estimate, Interval
from envkit.trial.record import TrialRecord

DRAWS: Final = 1_000_000
"""Trials that are played in all: about a second."""
RESAMPLES: Final = 200
"""Of the measured trials."""
MOST: Final = 10_000_000
"""Steps times prompts times samples; and no step of more than a hundredth of it."""
HOUR_S: Final = 3600.0
PART: Final = re.compile(r"\s*(\w+)\s*=\s*([0-9]{1,9})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The run that is planned."""

    steps: int
    prompts: int
    """A step."""
    samples: int
    """A prompt."""

    @property
    def a_step(self) -> int:
        return self.prompts * self.samples


def parse_training(text: str) -> Training:
    """``steps=200,prompts=16,samples=16``.

    Raises:
        HarnessError: a part is missing, unknown or no positive number, or they are too many.
    """
    parts = [PART.fullmatch(part) for part in text.split(",")]
    numbers = {part[1]: int(part[2]) for part in parts if part}
    if len(parts) == 3 and numbers.keys() == {"steps", "prompts", "samples"}:
        training = Training(**numbers)
        trials = training.steps * training.a_step
        if training.a_step <= MOST // 100 and 0 < trials <= MOST:
            return training
    raise HarnessError(
        f"--estimate {text}: not steps, prompts and samples, each from 1, of at most "
        f"{MOST:,} trials; write for example steps=200,prompts=16,samples=16"
    )


def estimate(
    records: Sequence[TrialRecord], training: Training, concurrency: int, seed: int = 0
) -> Estimate | None:
    """What the planned run takes; None where no trial was begun."""
    begun = [r for r in records if r.attempts and r.attempts[0].started_at > 0]
    if not begun:
        return None
    trials = training.steps * training.a_step
    boxes = [box_s(record) for record in begun]
    again = rate(sum(len(record.attempts) > 1 for record in begun), len(begun))
    lost = rate(sum(not record.reward_valid for record in begun), len(begun))
    hours, hours_async = _hours([slot_s(r) for r in begun], training, concurrency, seed)
    return Estimate(
        steps=training.steps,
        prompts=training.prompts,
        samples=training.samples,
        concurrency=concurrency,
        trials=trials,
        hours=hours,
        hours_async=hours_async,
        attempts=_scaled(again, trials, plus=1.0),  # a trial has two attempts at most
        invalid=_scaled(lost, trials),
        sandbox_hours={
            kind: trials * fmean(box[kind] for box in boxes) / HOUR_S for kind in boxes[0]
        },
    )


def lines(found: Estimate) -> tuple[str, ...]:
    """For a person: what it takes, and what it rests on."""
    plan = (
        f"{count(found.steps, 'step')} of {found.prompts} prompts x {found.samples} samples: "
        f"{found.trials:,} trials, {found.concurrency} at once"
    )
    each = ", ".join(f"{kind} {hours:,.1f}" for kind, hours in found.sandbox_hours.items())
    return (
        f"{plan}: {_h(found.hours)} where each step waits for its last trial, "
        f"{_h(found.hours_async)} where none waits",
        f"{sum(found.sandbox_hours.values()):,.1f} sandbox-hours ({each}); "
        f"{_n(found.attempts)} attempts; {_n(found.invalid)} trials without a valid reward",
        "the model's time is in these hours only as far as --think-time puts it there",
    )


def _hours(
    took: Sequence[float], training: Training, slots: int, seed: int
) -> tuple[Interval, Interval]:
    """(waiting at each step, never waiting)."""
    rng = random.Random(seed)
    rounds = max(40, DRAWS // training.a_step)
    resamples = min(RESAMPLES, rounds)
    steps = min(training.steps, max(1, rounds // resamples))
    waiting: list[float] = []
    mean: list[float] = []
    for _ in range(resamples):
        drawn = rng.choices(took, k=len(took))
        played = [step_s(rng.choices(drawn, k=training.a_step), slots) for _ in range(steps)]
        waiting.append(training.steps * fmean(played) / HOUR_S)
        mean.append(training.steps * training.a_step * fmean(drawn) / slots / HOUR_S)
    never = training.steps * training.a_step * fmean(took) / slots / HOUR_S
    return _around(fmean(waiting), waiting), _around(never, mean)


def step_s(took: Sequence[float], slots: int) -> float:
    """Seconds until the last of these trials has ended, each taking the first free slot."""
    free = [0.0] * min(slots, len(took))
    for seconds in took:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def _around(point: float, drawn: Sequence[float]) -> Interval:
    ordered = sorted(drawn)
    low, high = quantile(ordered, 0.025), quantile(ordered, 0.975)
    return Interval(value=point, low=min(point, low), high=max(point, high))


def _scaled(share: Interval, n: int, plus: float = 0.0) -> Interval:
    value, low, high = (None if v is None else n * (plus + v) for v in _ends(share))
    return Interval(value=value, low=low, high=high)


def _ends(interval: Interval) -> tuple[float | None, float | None, float | None]:
    return interval.value, interval.low, interval.high


def _h(hours: Interval) -> str:
    return f"{hours.value:,.2f} h (95 % {hours.low:,.2f} to {hours.high:,.2f})"


def _n(number: Interval) -> str:
    return f"{number.value:,.0f} (95 % {number.low:,.0f} to {number.high:,.0f})"
