# SPDX-License-Identifier: Apache-2.0
"""The objective's settings, each component's own put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from rltrain.config.read import by_name, never
from rltrain.objective.advantage import AdvantageConfig
from rltrain.objective.aggregate import AggregateConfig
from rltrain.objective.loss import LOSSES, Loss
from rltrain.objective.loss.dppo import Dppo
from rltrain.objective.shape import LengthPenalty
from rltrain.objective.terms import TermsConfig

STACKED: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(
        ("correction", "off_policy_correction", "old", "tis"),
        "a loss takes no off-policy correction beside it: dppo and glm5 go by the ratio to the"
        " rollout already, and a second one would count it twice; ppo with one is"
        " objective.loss.name = tis",
    )
)
"""Names by which it may be tried to stack one (RECIPE §4), and why that is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveConfig:
    """What a batch is worth. The defaults are those that won the published ablation."""

    advantage: AdvantageConfig = field(default_factory=AdvantageConfig)
    aggregate: AggregateConfig = field(default_factory=AggregateConfig)
    loss: Loss = field(default_factory=Dppo, metadata=by_name(LOSSES) | never(STACKED))
    terms: TermsConfig = field(default_factory=TermsConfig)
    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    overlong_filter: bool = False
    """Take no step on samples that were cut off; their rewards still count for the others."""
