# SPDX-License-Identifier: Apache-2.0
"""All settings of a run: each table is the frozen dataclass of the component that it is for."""

from __future__ import annotations

from dataclasses import dataclass, field

from rltrain.batch.config import BatchConfig
from rltrain.loop.config import CheckpointConfig, RunConfig
from rltrain.objective.config import ObjectiveConfig
from rltrain.policy.config import OptimizerConfig, PolicyConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A recipe, whole."""

    policy: PolicyConfig
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    batch: BatchConfig = field(default_factory=BatchConfig)
    run: RunConfig = field(default_factory=RunConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        """Refuse what contradicts itself across tables."""
        if self.objective.terms.kl > 0 and not self.policy.reference:
            raise ValueError(
                "objective.terms.kl is above 0 and policy.reference names no reference policy"
            )
