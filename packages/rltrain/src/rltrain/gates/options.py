# SPDX-License-Identifier: Apache-2.0
"""What a check is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rltrain.gates.config import GatesConfig
from rltrain.policy.config import Dtype

BOUNDS = GatesConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which trajectories, by which policy, and how they are compared."""

    store: Path
    """A store, or the directory of a run."""
    policy: Path
    """A checkpoint of Hugging Face's."""
    version: int | None = None
    """Of the weights; None for the only one there is, or the one of most tokens."""
    tokens: int = 200_000
    """Comparable ones that are scored, about."""
    limit: float = BOUNDS.logprob_difference
    """Nats."""
    least: int = BOUNDS.least_tokens
    """Comparable tokens."""
    dtype: Dtype = "float32"
    """Of the computation."""
    micro_batch_tokens: int = 2048
    """Of all samples of a micro-batch; a longer sample is alone in one, where attention needs no
    matrix of all pairs of tokens, as it does of packed ones."""
