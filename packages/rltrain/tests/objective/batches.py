# SPDX-License-Identifier: Apache-2.0
"""Batches for the tests of the objective: as hypothesis draws them, and as both sides take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from rltrain.objective.types import Alternatives, Samples, Tokens

REWARDS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 0.3333333])
FLAGS = st.sampled_from([(True, True), (True, True), (True, False), (False, False)])
"""Valid and live: an invalid sample is not live."""


@dataclass(frozen=True)
class Drawn:
    """Samples as plain lists."""

    rewards: list[float]
    valid: list[bool]
    live: list[bool]
    group: list[int]
    tokens: list[int]

    def samples(self, dtype: torch.dtype = torch.float64) -> Samples:
        return Samples(
            rewards=torch.tensor(self.rewards, dtype=dtype),
            valid=torch.tensor(self.valid, dtype=torch.bool),
            live=torch.tensor(self.live, dtype=torch.bool),
            group=torch.tensor(self.group, dtype=torch.int64),
            tokens=torch.tensor(self.tokens, dtype=torch.int64),
        )


@st.composite
def drawn(draw: Any, least: int = 1) -> Drawn:
    """Up to five prompts with up to six samples each, in any order."""
    rows: list[tuple[float, bool, bool, int, int]] = []
    for group in draw(st.lists(st.integers(-3, 99), min_size=1, max_size=5, unique=True)):
        for _ in range(draw(st.integers(least, 6))):
            valid, live = draw(FLAGS)
            reward = draw(REWARDS) if valid else float("nan")
            rows.append((reward, valid, live, group, draw(st.integers(0, 40))))
    rows = draw(st.permutations(rows))
    return Drawn(*map(list, zip(*rows, strict=True)))


@dataclass(frozen=True)
class DrawnTokens:
    """Tokens as numpy arrays of float64; NaN where the mask is not set."""

    logp: Any
    rollout: Any
    old: Any
    advantage: Any
    mask: Any
    sample: Any
    ids: Any
    topk_ids: Any
    topk_rollout: Any
    topk_policy: Any

    def tokens(self, dtype: torch.dtype) -> tuple[Tokens, torch.Tensor]:
        """For ours, and the log-probs whose gradient is wanted."""

        def floats(values: Any) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype)

        logp = floats(self.logp).requires_grad_()
        alternatives = Alternatives(
            ids=torch.tensor(self.topk_ids),
            rollout=floats(self.topk_rollout),
            policy=floats(self.topk_policy),
        )
        return Tokens(
            logp=logp,
            rollout=floats(self.rollout),
            advantage=floats(self.advantage),
            mask=torch.tensor(self.mask),
            sample=torch.tensor(self.sample),
            ids=torch.tensor(self.ids),
            old=floats(self.old),
            alternatives=alternatives,
        ), logp


def tokens_of(seed: int, count: int = 60, spread: float = 0.8) -> DrawnTokens:
    """Tokens of five samples; some far from their rollout, some with no advantage."""
    random = np.random.default_rng(seed)
    sample = np.sort(random.integers(0, 5, count))
    sample = np.unique(sample, return_inverse=True)[1]
    mask = random.random(count) < 0.7
    logp = -random.exponential(1.0, count)
    moved = random.normal(0, spread, count) * (random.random(count) < 0.9)
    moved += random.choice([0.0, 25.0, -25.0], count, p=[0.96, 0.02, 0.02])
    rollout = np.minimum(logp - moved, -1e-6)
    old = np.minimum(logp - random.normal(0, 0.3, count), -1e-6)
    worth = random.normal(0, 1, 5) * (random.random(5) < 0.9)
    ids = random.integers(0, 30, count)
    topk = np.array([random.permutation(30)[:3] for _ in range(count)])
    topk[random.random(topk.shape) < 0.1] = -1
    nowhere = np.where(mask, 0.0, np.nan)
    return DrawnTokens(
        logp=logp + nowhere,
        rollout=rollout + nowhere,
        old=old + nowhere,
        advantage=worth[sample],
        mask=mask,
        sample=sample,
        ids=ids,
        topk_ids=topk,
        topk_rollout=np.log(random.dirichlet([1.0] * 8, count)[:, :3]),
        topk_policy=np.log(random.dirichlet([1.0] * 8, count)[:, :3]),
    )
