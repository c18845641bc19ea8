# SPDX-License-Identifier: Apache-2.0
"""What must hold before training goes on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class OverfitConfig:
    """That a few tasks can be learned. Tasks and samples are those of the published gate."""

    tasks: int = 32
    """Of which samples differ in reward; all of them in every step."""
    samples: int = 8
    """Of each task, and all trained on before the next are sampled."""
    run: str = ""
    """Directory of the run of ``rltrain overfit`` that a live run rests on."""
    required: bool = True
    """No live run without one that passed, of the same policy."""
    rise: float = 0.08
    """Of the mean reward, to pass. The published gate rose by 0.13; the difference of two means of
    32 x 8 rewards, a fifth of them 1 and the others 0, has a deviation of 0.035."""

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.samples < 2:
            raise ValueError("tasks at least 1, and samples at least 2: one alone has no baseline")
        if self.rise <= 0:
            raise ValueError(f"rise: {self.rise:g} is not above 0, so nothing need be learned")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatesConfig:
    """The bounds."""

    logprob_difference: float = 0.03
    """Nats: mean over tokens of \\|trainer - rollout\\| at staleness 0; more has failed."""
    least_tokens: int = 2048
    """Comparable ones; with fewer it is not measured, which is failed too."""
    override: bool = False
    """Train on past a gate that failed, which is said at each step."""
    overfit: OverfitConfig = field(default_factory=OverfitConfig)

    def __post_init__(self) -> None:
        if self.logprob_difference <= 0:
            raise ValueError(f"logprob_difference: {self.logprob_difference:g} is not above 0")
        if self.least_tokens < 1:
            raise ValueError(f"least_tokens: {self.least_tokens} is below 1")
