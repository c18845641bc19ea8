# SPDX-License-Identifier: Apache-2.0
"""A run in the figures that a person asks for first.

Contract: a reward never stands without its fault share and its bounds; what was not measured says
so. ``worst`` is the largest value of all steps and names its step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from envkit.preflight.text import count, percent, seconds
from rltrain.track.metrics import Step
from rltrain.track.run import Run

HEALTHY: Final = 0.03
"""Mean log-prob difference of a run whose trainer and engine compute the same policy."""
PARTS: Final = (
    *("wait", "gate", "read", "stamp", "score", "step", "checkpoint", "sync", "evaluate"),
    "other",
)
"""What a step's time is spent on, in its order."""
NOT_MEASURED: Final = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """The mean of the valid samples of one step, and what the others could change of it."""

    step: int
    mean: float
    fault_share: float | None
    low: float | None
    high: float | None
    count: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A number over all steps that measured it."""

    first: float
    last: float
    worst: float
    worst_step: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures; None for what was not measured."""

    steps: int
    last_step: int | None
    reward: Reward | None
    entropy: Extent | None
    logprob_difference: Extent | None
    unhealthy_steps: int
    """Steps whose log-prob difference is `HEALTHY` or more."""
    gradient_norm: Extent | None
    seconds: float | None
    remark: str
    """What of the run's numbers could not be read."""


def summarise(run: Run) -> Summary:
    """The figures of a run."""
    differences = [value for value in run.series("logprob/difference") if value is not None]
    totals = [value for value in map(step_seconds, run.history.steps) if value is not None]
    return Summary(
        steps=len(run.steps),
        last_step=run.steps[-1] if run.steps else None,
        reward=_reward(run.history.steps),
        entropy=_extent(run, "loss/entropy"),
        logprob_difference=_extent(run, "logprob/difference"),
        unhealthy_steps=sum(value >= HEALTHY for value in differences),
        gradient_norm=_extent(run, "optimizer/gradient_norm"),
        seconds=sum(totals) if totals else None,
        remark=run.history.remark,
    )


def step_seconds(step: Step) -> float | None:
    """What a step took: its total, or its parts together where that is not there."""
    total = step.numbers.get("seconds/total")
    parts = [step.numbers.get(f"seconds/{part}") for part in PARTS]
    measured = [part for part in parts if part is not None]
    return total if total is not None or not measured else sum(measured)


def lines(summary: Summary) -> tuple[str, str, str]:
    """The figures as three lines of text."""
    last = summary.last_step
    numbered = "" if last in (None, summary.steps) else f", the last one {last}"
    return (
        f"{count(summary.steps, 'step')}{numbered}; total time {duration(summary.seconds)}",
        f"reward {reward_line(summary.reward)}",
        f"entropy {entropy_line(summary.entropy)}; "
        f"log-prob difference {difference_line(summary)}; "
        f"gradient norm {worst_line(summary.gradient_norm)}",
    )


def reward_line(reward: Reward | None) -> str:
    """A mean with its fault share and bounds."""
    if reward is None:
        return NOT_MEASURED
    return f"{figure(reward.mean)} at step {reward.step}, {doubt(reward)}"


def doubt(reward: Reward) -> str:
    """What faults leave open of a reward."""
    share = NOT_MEASURED if reward.fault_share is None else percent(reward.fault_share)
    if reward.low is None or reward.high is None:
        return f"fault share {share}, bounds {NOT_MEASURED}"
    return f"fault share {share}, bounds {figure(reward.low)} to {figure(reward.high)}"


def entropy_line(entropy: Extent | None) -> str:
    """From the first step to the last."""
    return f"{figure(entropy.first)} → {figure(entropy.last)}" if entropy else NOT_MEASURED


def difference_line(summary: Summary) -> str:
    """The last and the worst, and how often it was too much."""
    extent = summary.logprob_difference
    if extent is None:
        return NOT_MEASURED
    worst = f"{figure(extent.last)} last, {worst_line(extent)}"
    if not summary.unhealthy_steps:
        return worst
    return f"{worst}, {HEALTHY} or more in {summary.unhealthy_steps} of {extent.steps}"


def worst_line(extent: Extent | None) -> str:
    """The largest value and its step."""
    if extent is None:
        return NOT_MEASURED
    return f"{figure(extent.worst)} at worst (step {extent.worst_step})"


def duration(value: float | None) -> str:
    """``4.2 s``, ``3 min 05 s``, ``2 h 05 min``, ``3 d 04 h``."""
    if value is None:
        return NOT_MEASURED
    minutes, hours = round(value / 60), round(value / 3600)
    if minutes < 60:
        return seconds(value)
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


def figure(value: float) -> str:
    """A number with three significant digits, or all that stand before the point."""
    if 1000 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e+")


def _reward(steps: Sequence[Step]) -> Reward | None:
    for step in reversed(steps):
        mean = step.numbers.get("reward/mean")
        if mean is not None:
            share, low, high, of = (
                step.numbers.get(f"reward/{name}")
                for name in ("fault_share", "low", "high", "count")
            )
            return Reward(
                step=step.step, mean=mean, fault_share=share, low=low, high=high, count=of
            )
    return None


def _extent(run: Run, name: str) -> Extent | None:
    pairs = zip(run.steps, run.series(name), strict=True)
    measured = [(step, value) for step, value in pairs if value is not None]
    if not measured:
        return None
    worst_step, worst = max(measured, key=lambda pair: pair[1])
    return Extent(
        first=measured[0][1],
        last=measured[-1][1],
        worst=worst,
        worst_step=worst_step,
        steps=len(measured),
    )
