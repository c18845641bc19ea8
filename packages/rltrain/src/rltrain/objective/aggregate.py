# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Which weight a token has in the sum.

Contract: weights are of the whole batch and stamped before it is cut, so micro-batches and ranks
only add up. Only live samples count, in every denominator: a sample or a group that is not live
changes no weight of any other. What a loss masks is in the denominators all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import torch
from torch import Tensor

from rltrain.objective.groups import Groups
from rltrain.objective.types import Samples

type Name = Literal[
    "token_mean", "sequence_mean", "prompt_mean", "prompt_sequence_mean", "token_sum_norm"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateConfig:
    """How tokens are averaged."""

    name: Name = "prompt_mean"
    longest: int = 0
    """Of ``token_sum_norm``: L_max, the tokens that a sample may have at most."""

    def __post_init__(self) -> None:
        if self.name not in AGGREGATIONS:
            known = ", ".join(AGGREGATIONS)
            raise ValueError(f"name: there is no {self.name!r}; there are {known}")
        if (self.longest > 0) != (self.name == "token_sum_norm"):
            raise ValueError("longest: token_sum_norm needs it above 0, and no other takes it")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Live:
    """What of a batch counts. Tensors of floats are of the weights' own type."""

    tokens: Tensor
    """``[N]``: T_i, zero where the sample is not live."""
    live: Tensor
    """``[N]``: 1 for live."""
    groups: Groups


type Aggregation = Callable[[Live, AggregateConfig], Tensor]


def token_weights(
    config: AggregateConfig, samples: Samples, dtype: torch.dtype = torch.float64
) -> Tensor:
    """``[N]``: the weight of each token that a sample is trained on; zero where it is not live."""
    live = samples.live & (samples.tokens > 0)
    counted = Live(
        tokens=(samples.tokens * live).to(dtype),
        live=live.to(dtype),
        groups=Groups.of(samples.group),
    )
    return torch.where(live, AGGREGATIONS[config.name](counted, config), 0.0)


def _token_mean(live: Live, _: AggregateConfig) -> Tensor:
    return torch.ones_like(live.tokens) / live.tokens.sum()


def _sequence_mean(live: Live, _: AggregateConfig) -> Tensor:
    return 1.0 / (live.live.sum() * live.tokens)


def _prompt_mean(live: Live, _: AggregateConfig) -> Tensor:
    tokens = live.groups.sum(live.tokens)
    return 1.0 / (_prompts(tokens) * live.groups.each(tokens))


def _prompt_sequence_mean(live: Live, _: AggregateConfig) -> Tensor:
    samples = live.groups.sum(live.live)
    return 1.0 / (_prompts(samples) * live.groups.each(samples) * live.tokens)


def _token_sum_norm(live: Live, config: AggregateConfig) -> Tensor:
    return torch.ones_like(live.tokens) / (live.live.sum() * config.longest)


def _prompts(of_groups: Tensor) -> Tensor:
    """P: how many prompts have a live sample."""
    return (of_groups > 0).sum()


AGGREGATIONS: Final[Mapping[str, Aggregation]] = MappingProxyType(
    {
        "token_mean": _token_mean,
        "sequence_mean": _sequence_mean,
        "prompt_mean": _prompt_mean,
        "prompt_sequence_mean": _prompt_sequence_mean,
        "token_sum_norm": _token_sum_norm,
    }
)
