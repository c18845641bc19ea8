# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The gate before a long run: can a few tasks be learned at all, and if not, where does it break?

Contract: it passes where the mean reward of the tasks rose by what was asked, and the interval of
the paired difference excludes no change, with invalid trials counted as 0. Else it walks back from
rewards over faults, tokens and gradients to the sync, and names the first thing that is not right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from pydantic import BaseModel, ConfigDict

from envkit.durable import write_durably
from rltrain.evaluate.scores import Scores, difference
from rltrain.gates.config import GatesConfig
from rltrain.track.metrics import Step

VERDICT: Final = "overfit.json"
"""In a run's directory."""
MUCH: Final = 0.2
"""A share of trials that a mean must not hide."""
MOST: Final = 0.5
STILL: Final = 1e-6
"""A gradient's norm, or a drift of the policy, that is none."""


class Verdict(BaseModel):
    """What came of the gate."""

    model_config = ConfigDict(frozen=True)
    passed: bool
    before: float
    after: float
    rise: float
    low: float
    high: float
    wanted: float
    tasks: int
    steps: int
    policy: str = ""
    """Digest of the weights that it began with; empty where they have none."""
    data: str = ""
    """Digest of its tasks."""
    diagnosis: tuple[str, ...] = ()
    """Where it does not pass: what is not right, the first cause first."""


def judged(
    before: Scores, after: Scores, steps: Sequence[Step], config: GatesConfig, constant: int
) -> Verdict:
    """Whether what happened is enough; ``constant`` tasks were left out as they cannot teach."""
    found, wanted = difference(before, after, "as_zero"), config.overfit.rise
    passed = found.rises and found.mean >= wanted
    return Verdict(
        passed=passed,
        before=before.mean("as_zero"),
        after=after.mean("as_zero"),
        rise=found.mean,
        low=found.low,
        high=found.high,
        wanted=wanted,
        tasks=found.tasks,
        steps=len(steps),
        diagnosis=() if passed else tuple(diagnosis(steps, after, config, constant)),
    )


def diagnosis(
    steps: Sequence[Step], after: Scores, config: GatesConfig, constant: int
) -> Iterator[str]:
    """What may be why nothing was learned, in the order in which causes come."""
    if not steps:
        yield "no step was taken"
        return
    yield from _rewards(steps, constant, len(after.rewards))
    yield from _faults(steps, after)
    yield from _tokens(steps, config)
    yield from _gradients(steps)
    yield from _sync(steps, config)
    yield "none of the causes that numbers show: more steps, another learning rate, easier tasks"


def keep(root: Path, verdict: Verdict) -> None:
    """Leave it beside the run."""
    write_durably(root / VERDICT, verdict.model_dump_json(indent=1).encode())


def verdict_of(root: Path) -> Verdict | None:
    """That of a run; None where there is none."""
    file = root / VERDICT
    return Verdict.model_validate_json(file.read_bytes()) if file.is_file() else None


def _rewards(steps: Sequence[Step], constant: int, tasks: int) -> Iterator[str]:
    if constant > tasks:
        yield f"rewards: {constant} tasks earned one and the same reward each; {tasks} did not"
    dropped, trained = _mean(steps, "groups/no_variance"), _mean(steps, "groups/trained")
    if dropped > trained:
        yield f"rewards: {dropped:.1f} groups a step had one reward each, {trained:.1f} had several"


def _faults(steps: Sequence[Step], after: Scores) -> Iterator[str]:
    share = _mean(steps, "rollout/fault_rate")
    if share > MUCH or after.invalid_share > MUCH:
        yield (
            f"faults: they took {share:.0%} of the trials in training and"
            f" {after.invalid_share:.0%} of the last evaluation's; envkit audit says whose they are"
        )


def _tokens(steps: Sequence[Step], config: GatesConfig) -> Iterator[str]:
    mismatch, limit = _mean(steps, "gate/mean"), config.logprob_difference
    if mismatch > limit:
        yield f"tokens: engine and trainer differ by {mismatch:.3g} nats a token, above {limit:g}"
    if (cut := _mean(steps, "behaviour/cut_off")) > MOST:
        yield f"tokens: {cut:.0%} of the trajectories ran into a limit before they were done"


def _gradients(steps: Sequence[Step]) -> Iterator[str]:
    norm = _mean(steps, "optimizer/gradient_norm")
    if norm < STILL:
        yield f"gradients: their norm is {norm:.1e}: nothing pulls at the policy"
    if (rate := _mean(steps, "optimizer/learning_rate")) <= 0:
        yield f"gradients: the learning rate is {rate:g}"
    for sign in ("positive", "negative"):
        if (masked := _mean(steps, f"loss/masked_{sign}")) > MOST:
            yield f"gradients: the loss masks {masked:.0%} of the tokens with {sign} advantage"
    first, last = (_of(steps[at].numbers, "loss/entropy") for at in (0, -1))
    if last < first * (1 - MOST):
        yield f"gradients: the entropy fell from {first:.3g} to {last:.3g} nats a token"


def _sync(steps: Sequence[Step], config: GatesConfig) -> Iterator[str]:
    moved = _mean(steps, "optimizer/gradient_norm") * _mean(steps, "optimizer/learning_rate")
    drift = _mean(steps[1:], "loss/tv")
    if moved > 0 and _mean(steps, "staleness/max") > 0 and drift < STILL:
        yield "sync: samples of older weights score as if these had not changed: engines get none"
    if all(math.isnan(_of(each.numbers, "gate/mean")) for each in steps):
        yield "sync: engines and trainer were never compared"


def _mean(steps: Sequence[Step], name: str) -> float:
    """Over steps that measured it; NaN, which is above nothing, over none."""
    found = [value for each in steps if math.isfinite(value := _of(each.numbers, name))]
    return fmean(found) if found else math.nan


def _of(numbers: Mapping[str, float | None], name: str) -> float:
    value = numbers.get(name)
    return math.nan if value is None else value
