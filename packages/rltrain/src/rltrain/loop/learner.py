# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""A policy that takes steps on samples: what recorded and live training have in common.

Contract: a step is a function of the settings, the samples, the weights before it and its number.
All ranks call it together with the same samples; each cuts its own part out of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rltrain.batch.cost import Cost
from rltrain.batch.micro import MicroBatch, cut
from rltrain.batch.sample import Sample
from rltrain.batch.stamp import Stamped, stamp
from rltrain.loop.figures import figures
from rltrain.loop.seconds import Seconds
from rltrain.loop.settings import Settings
from rltrain.objective.loss.clipped import Tis
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import seed_step
from rltrain.policy.types import Backend, Goal


class Learner:
    """On this rank."""

    def __init__(self, settings: Settings, cost: Cost, seconds: Seconds) -> None:
        """Load the policy, and the reference where there is one.

        Raises:
            Refused: one of them cannot be loaded or packed.
        """
        self._settings, self._cost, self._seconds = settings, cost, seconds
        self._goal = Goal(loss=settings.objective.loss, terms=settings.objective.terms)
        self.backend: Backend = FsdpBackend(settings.policy, settings.optimizer)
        self._reference = _reference(settings)

    def learn(self, step: int, samples: Sequence[Sample], version: int) -> dict[str, float]:
        """Take the step of this number, from 0; what it told.

        ``version`` is that of the weights which the step changes, as ``samples`` have it.
        """
        part = self._seconds.part
        seed_step(self._settings.run.seed, step, self.backend.rank)
        with part("stamp"):
            stamped = stamp(self._settings.objective, samples)
            mine = self._cut(stamped)
        with part("score"):
            mine = [self._scored(each) for each in mine]
        with part("step"):
            stepped = self.backend.step(mine, self._goal) if mine else None
        return figures(stamped, stepped, version)

    def _cut(self, stamped: Stamped) -> list[MicroBatch]:
        cap = self._settings.batch.micro_batch_tokens
        parts = cut(stamped, self._cost, cap=cap, ranks=self.backend.ranks)
        return parts[self.backend.rank]

    def _scored(self, batch: MicroBatch) -> MicroBatch:
        """With the log-probs of other policies that the goal asks for."""
        more: dict[str, Any] = {}
        if self._reference is not None:
            more["reference"] = self._reference.score(batch).logp
        if isinstance(self._goal.loss, Tis):
            more["old"] = self.backend.score(batch).logp
        return replace(batch, **more)


def _reference(settings: Settings) -> Backend | None:
    if settings.objective.terms.kl <= 0:
        return None
    policy = replace(settings.policy, path=settings.policy.reference, lora=None)
    return FsdpBackend(policy, settings.optimizer)
