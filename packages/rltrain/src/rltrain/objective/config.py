# SPDX-License-Identifier: Apache-2.0
"""The objective's settings, each component's own put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from rltrain.config.read import by_name
from rltrain.objective.advantage import AdvantageConfig
from rltrain.objective.aggregate import AggregateConfig
from rltrain.objective.loss import LOSSES, Loss
from rltrain.objective.loss.dppo import Dppo
from rltrain.objective.shape import LengthPenalty
from rltrain.objective.terms import TermsConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveConfig:
    """What a batch is worth. The defaults are those that won the published ablation."""

    advantage: AdvantageConfig = field(default_factory=AdvantageConfig)
    aggregate: AggregateConfig = field(default_factory=AggregateConfig)
    loss: Loss = field(default_factory=Dppo, metadata=by_name(LOSSES))
    terms: TermsConfig = field(default_factory=TermsConfig)
    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    overlong_filter: bool = False
    """Take no step on samples that were cut off; their rewards still count for the others."""
