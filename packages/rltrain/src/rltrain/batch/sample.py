# SPDX-License-Identifier: Apache-2.0
"""From a trajectory to what a trainer takes of it.

Contract: whatever is trained was sampled by the engine, and its recorded log-prob is of the very
distribution that the trainer will make again: the model's own, at the temperature it was sampled
at. A trajectory of which that cannot be said is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from envkit.trajectory.types import Floats, Ids, Kind, Mask, Sampling, Stop, Trajectory

OWN = Sampling()
"""How the model's own distribution is sampled."""


class OtherDistribution(ValueError):
    """Its log-probs are of a distribution that the trainer does not make."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sample:
    """One trajectory. Arrays have one entry a token."""

    trajectory_id: str
    group_id: str
    """Samples of one prompt are compared with each other."""
    token_ids: Ids
    mask: Mask
    """Sampled by the model."""
    logprobs: Floats
    """As the engine recorded them; NaN elsewhere."""
    weight_version: Ids
    """-1 elsewhere, and where it is not known."""
    temperature: float
    reward: float | None
    valid: bool
    live: bool
    stop: Stop
    environment_tokens: int
    """What the model was shown after its prompt."""
    turns: int = 0
    calls: int = 0
    """Of tools."""
    calls_ok: int = 0
    kv_version: Ids | None = None
    """The oldest weights whose keys and values it attends to; -1 elsewhere, and where that is not
    known."""
    topk_ids: Ids | None = None
    """``[n, k]``, -1 where there is none."""
    topk_logprobs: Floats | None = None

    @classmethod
    def of(cls, row: Trajectory) -> Self:
        """What a trainer takes of a trajectory.

        Raises:
            OtherDistribution: it was sampled with a cut or penalised distribution.
        """
        stream, outcome = row.episode.stream, row.outcome
        return cls(
            trajectory_id=row.identity.trajectory_id,
            group_id=row.identity.group_id,
            token_ids=stream.token_ids,
            mask=stream.loss_mask,
            logprobs=stream.logprobs,
            weight_version=stream.weight_version,
            temperature=_temperature(row.identity.trajectory_id, row.identity.sampling),
            reward=outcome.reward,
            valid=outcome.reward_valid,
            live=outcome.loss_live,
            stop=row.episode.stop,
            environment_tokens=sum(
                each.stop - each.start
                for each in stream.segments
                if each.kind in (Kind.TOOL, Kind.HARNESS)
            ),
            turns=row.episode.used.turns,
            calls=len(row.episode.calls),
            calls_ok=sum(each.ok for each in row.episode.calls),
            kv_version=kv_versions(row),
            topk_ids=stream.topk_ids,
            topk_logprobs=stream.topk_logprobs,
        )

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def trained(self) -> int:
        """How many of its tokens the model sampled, T_i."""
        return int(self.mask.sum())


def kv_versions(row: Trajectory) -> Ids:
    """Of each token that the model sampled, the oldest weights whose keys and values it attends to;
    -1 elsewhere, and where that is not known."""
    stream = row.episode.stream
    found = np.full(len(stream.token_ids), -1, np.int32)
    models = [each for each in stream.segments if each.kind is Kind.MODEL]
    for each, request in zip(models, row.episode.requests, strict=True):
        found[each.start : each.stop] = request.kv_version
    return found


def _temperature(row: str, sampling: Sampling) -> float:
    for name in ("top_p", "top_k", "min_p"):
        _expect(row, sampling, name)
    for name in ("presence_penalty", "frequency_penalty", "repetition_penalty", "grammar"):
        _expect(row, sampling, name)
    if sampling.temperature <= 0:
        raise OtherDistribution(f"{row}: temperature {sampling.temperature:g} leaves no choice")
    if sampling.temperature != 1.0 and sampling.logprobs_mode != "processed":
        raise OtherDistribution(
            f"{row}: log-probs are of temperature 1, and {sampling.temperature:g} was sampled at;"
            " start the engine with --logprobs-mode processed_logprobs"
        )
    return sampling.temperature


def _expect(row: str, sampling: Sampling, name: str) -> None:
    value = getattr(sampling, name)
    if value != getattr(OWN, name):
        raise OtherDistribution(
            f"{row}: was sampled with {name} {value!r}, whose distribution no trainer makes again"
        )
