# SPDX-License-Identifier: Apache-2.0
"""The trainer's tensors by the names, and with the values, that checkpoints have."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

from rltrain.refused import Refused
from rltrain.sync.names import FAMILIES, checkpoint_names

sys.path.insert(0, str(Path(__file__).parents[1] / "policy/fsdp"))
import families

pytestmark = pytest.mark.trainer


def model_of(family: str, **more: Any) -> Any:
    torch.manual_seed(0)
    settings = {**families.SMALL, **families.FAMILIES[family], **more}
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **settings))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_what_save_pretrained_writes(family: str, tied: bool, tmp_path: Path) -> None:
    model = model_of(family, tie_word_embeddings=tied)
    model.save_pretrained(tmp_path)
    written = load_file(tmp_path / "model.safetensors")
    ours = dict(checkpoint_names(model.named_parameters(), family))
    assert ours.keys() == written.keys()
    assert all(torch.equal(ours[name], each) for name, each in written.items())


def test_a_family_whose_names_nobody_compared_is_refused() -> None:
    with pytest.raises(Refused, match="model_type qwen3_next is not known"):
        list(checkpoint_names([], "qwen3_next"))


def test_a_fused_tensor_that_is_not_known_is_refused_by_name() -> None:
    fused = ("model.layers.0.mlp.experts.gate_up_proj_bias", torch.zeros(4, 8))
    with pytest.raises(Refused, match=r"experts\.gate_up_proj_bias: how qwen3_moe fuses it"):
        list(checkpoint_names([fused], "qwen3_moe"))
    with pytest.raises(Refused, match="how qwen3 fuses it"):
        list(checkpoint_names([("mlp.experts.down_proj", torch.zeros(4, 8, 2))], "qwen3"))
