# SPDX-License-Identifier: Apache-2.0
"""When a run must not go on by itself: five rules over the numbers of its steps.

Contract: a rule that is broken names itself, the number and its bound. The step that broke it is in
no checkpoint, so going on begins from the last one before it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from rltrain.refused import Stopped

WINDOW: Final = 8
"""Steps that a rule compares with."""
FEWEST: Final = 5
"""Of them; with fewer nothing is compared."""


class RuleBroken(Stopped):
    """The run is stopped by a rule of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesConfig:
    """Bounds; 0 turns a rule off. A number that is NaN where it must not be always stops."""

    gradient_spike: float = 20.0
    """Times the median of the last steps' gradient norms."""
    entropy_share: float = 0.1
    """Of the entropy of the run's first steps, below which the policy has collapsed."""
    fault_rate: float = 0.5
    """Share of a step's trials that a fault took, over the last steps together."""
    reward_with_faults: float = 0.1
    """Rise of the mean reward over the last steps while the share of faults rises by as much: what
    is hard may be failing, and what is easy left over."""

    def __post_init__(self) -> None:
        for name in ("gradient_spike", "entropy_share", "fault_rate", "reward_with_faults"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name):g} is below 0")


class Trials:
    """Told how every trial ended, also where no step comes to be taken."""

    def __init__(self, config: RulesConfig, window: int) -> None:
        """``window`` are the trials that a rate is taken over."""
        self._bound = config.fault_rate
        self._ended: deque[str] = deque(maxlen=window)
        """What took each; empty where nothing did."""

    def ended(self, fault: str) -> None:
        """One has; ``fault`` is what took it, empty where nothing did.

        Raises:
            RuleBroken: faults take too many.
        """
        self._ended.append(fault)
        taken = [each for each in self._ended if each]
        full = len(self._ended) == self._ended.maxlen
        if self._bound and full and len(taken) > self._bound * len(self._ended):
            most, count = Counter(taken).most_common(1)[0]
            raise RuleBroken(
                f"faults took {len(taken)} of the last {len(self._ended)} trials, {count} of them:"
                f" {most}; the run is stopped: envkit show its trials, and go on by --resume"
            )


class Rules:
    """Told the numbers of every step."""

    def __init__(self, config: RulesConfig) -> None:
        self._config = config
        self._seen: deque[Mapping[str, float]] = deque(maxlen=WINDOW)
        self._first: list[float] = []

    def expect(self, step: int, numbers: Mapping[str, float]) -> None:
        """Go on.

        Raises:
            RuleBroken: it must not.
        """
        for why in self._broken(numbers):
            raise RuleBroken(
                f"step {step}: {why}; the run is stopped, and the step is in no checkpoint: look"
                " into it, and go on from the last one by --resume"
            )
        self._seen.append(numbers)
        if len(self._first) < FEWEST and math.isfinite(entropy := _of(numbers, "loss/entropy")):
            self._first.append(entropy)

    def _broken(self, numbers: Mapping[str, float]) -> Iterator[str]:
        for name in ("loss/value", "optimizer/gradient_norm"):
            if name in numbers and not math.isfinite(numbers[name]):
                yield f"{name} is {numbers[name]}"
        yield from self._spike(_of(numbers, "optimizer/gradient_norm"))
        yield from self._collapse(_of(numbers, "loss/entropy"))
        yield from self._faults(numbers)
        yield from self._together(numbers)

    def _spike(self, norm: float) -> Iterator[str]:
        before = [each for each in self._column("optimizer/gradient_norm") if each > 0]
        bound = self._config.gradient_spike
        if bound and len(before) >= FEWEST and norm > bound * median(before):
            yield f"the gradient's norm {norm:.3g} is {norm / median(before):.0f} times the usual"

    def _collapse(self, entropy: float) -> Iterator[str]:
        share = self._config.entropy_share
        if share and len(self._first) == FEWEST and entropy < share * median(self._first):
            yield f"the entropy fell from {median(self._first):.3g} to {entropy:.3g} nats a token"

    def _faults(self, numbers: Mapping[str, float]) -> Iterator[str]:
        bound = self._config.fault_rate
        rates = [*self._column("rollout/fault_rate"), _of(numbers, "rollout/fault_rate")]
        known = [each for each in rates if math.isfinite(each)]
        if bound and len(known) >= FEWEST and sum(known) / len(known) > bound:
            yield f"faults took {sum(known) / len(known):.0%} of the trials of the last steps"

    def _together(self, numbers: Mapping[str, float]) -> Iterator[str]:
        bound = self._config.reward_with_faults
        if not bound or len(self._seen) < WINDOW:
            return
        reward = _of(numbers, "reward/mean") - median(self._column("reward/mean"))
        faults = _of(numbers, "rollout/fault_rate") - median(self._column("rollout/fault_rate"))
        if reward > bound and faults > bound:
            yield f"the mean reward rose by {reward:.2f} while the fault rate rose by {faults:.2f}"

    def _column(self, name: str) -> list[float]:
        return [_of(each, name) for each in self._seen]


def _of(numbers: Mapping[str, float], name: str) -> float:
    return numbers.get(name, math.nan)
