# SPDX-License-Identifier: Apache-2.0
"""A model that lets packed samples see each other is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from rltrain.batch.micro import MicroBatch
from rltrain.policy.fsdp.leak import Leaks, expect_apart
from rltrain.policy.fsdp.scorer import Scorer

sys.path.insert(0, str(Path(__file__).parent))
from small import qwen3

pytestmark = pytest.mark.trainer


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    from transformers import AutoModelForCausalLM

    path = qwen3(tmp_path_factory.mktemp("model") / "qwen3")
    return Scorer(AutoModelForCausalLM.from_pretrained(path))


def test_attention_by_positions_keeps_samples_apart(scorer: Scorer) -> None:
    expect_apart(scorer, 97)


class Forgetful(torch.nn.Module):
    """Tells its model of one long sample."""

    def __init__(self, scorer: Scorer) -> None:
        super().__init__()
        self.scorer = scorer

    def forward(self, batch: MicroBatch) -> Any:
        from dataclasses import replace

        return self.scorer(replace(batch, positions=torch.arange(len(batch.ids))))


def test_a_model_that_does_not_heed_positions_is_refused(scorer: Scorer) -> None:
    with pytest.raises(Leaks, match=r"a change of sample 0 moves sample 1 by .* nats"):
        expect_apart(Forgetful(scorer), 97)


class Recurrent(torch.nn.Module):
    """A linear recurrence over the whole row, as a fallback without bounds has it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(97, 16)

    def forward(self, batch: MicroBatch) -> Any:
        seen = self.embedding(batch.ids)
        state = torch.stack([seen[: n + 1].mean(0) for n in range(len(seen))])
        logps = (state @ self.embedding.weight.T).log_softmax(-1)
        chosen = logps[batch.states].gather(-1, batch.targets[:, None]).squeeze(-1)
        return chosen, chosen


def test_a_recurrence_without_bounds_is_refused() -> None:
    with pytest.raises(Leaks, match="moves sample"):
        expect_apart(Recurrent(), 97)
