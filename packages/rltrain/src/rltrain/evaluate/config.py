# SPDX-License-Identifier: Apache-2.0
"""How a policy is evaluated: as its trials are, with another context and never a nudge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateConfig:
    """What differs from ``rollout``; all else is as there. The defaults are the published ones."""

    tasks: str = ""
    """Directory of those that are held out; empty for those that are trained on."""
    context_tokens: int = 262_144
    passes: int = 3
    """Over all tasks; a reward's interval is over them."""
    every_steps: int = 20
    """Between two while training; 0 for none."""

    def __post_init__(self) -> None:
        for name in ("context_tokens", "passes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is below 1")
        if self.every_steps < 0:
            raise ValueError(f"every_steps: {self.every_steps} is below 0")
