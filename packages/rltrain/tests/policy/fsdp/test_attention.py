# SPDX-License-Identifier: Apache-2.0
"""Attention from sample to sample is the model's own, packed or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.attention import VARLEN, NotVarlen
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.fsdp.leak import expect_apart
from rltrain.policy.fsdp.scorer import Scorer
from rltrain.policy.ranks import joined
from rltrain.refused import Refused

sys.path.insert(0, str(Path(__file__).parent))
from families import FAMILIES, made

pytestmark = pytest.mark.trainer

LENGTHS = (9, 1, 30, 14)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_what_eager_makes_of_each_sample_alone(family: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    made(family, tmp_path)
    eager, ours = (
        AutoModelForCausalLM.from_pretrained(
            tmp_path, dtype=torch.float32, attn_implementation=each
        )
        for each in ("eager", VARLEN)
    )
    ids = torch.randint(0, 97, (sum(LENGTHS),), generator=torch.Generator().manual_seed(1))
    positions = torch.cat([torch.arange(length) for length in LENGTHS])
    packed = ours.get_decoder()(
        input_ids=ids[None], position_ids=positions[None], use_cache=False, lengths=LENGTHS
    ).last_hidden_state[0]
    alone = torch.cat(
        [
            eager.get_decoder()(input_ids=each[None], use_cache=False).last_hidden_state[0]
            for each in ids.split(LENGTHS)
        ]
    )
    off = float((packed - alone).detach().abs().max())
    assert off < 2e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_keeps_packed_samples_apart(family: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    made(family, tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation=VARLEN)
    expect_apart(Scorer(model), 97)


def test_a_model_that_caps_its_scores_is_refused(tmp_path: Path) -> None:
    scorer = _opened("gemma2", tmp_path)
    with pytest.raises(NotVarlen, match=r"it uses softcap; take sdpa$"):
        expect_apart(scorer, 97)


def test_a_backend_of_a_model_that_cannot_be_packed_is_refused_in_one_line(tmp_path: Path) -> None:
    """Its linear attention knows no bounds without a kernel that no CPU has."""
    made("qwen3_next", tmp_path)
    policy = PolicyConfig(path=str(tmp_path), dtype="float32")
    with joined(), pytest.raises(Refused, match=r"^policy\.path: .* cannot be packed: .* nats"):
        FsdpBackend(policy, OptimizerConfig())


def test_a_model_that_is_not_told_of_samples_is_refused(tmp_path: Path) -> None:
    scorer = _opened("qwen3", tmp_path)
    with pytest.raises(NotVarlen, match="it hides where samples end"):
        scorer.model.get_decoder()(input_ids=torch.arange(9)[None], use_cache=False)


def _opened(family: str, place: Path) -> Any:
    from transformers import AutoModelForCausalLM

    made(family, place)
    return Scorer(AutoModelForCausalLM.from_pretrained(place, attn_implementation=VARLEN))
