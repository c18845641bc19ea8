# SPDX-License-Identifier: Apache-2.0
"""Parameters are counted as transformers makes them, norms and biases left out."""

from __future__ import annotations

from typing import Any

import pytest

from rltrain.plan.memory import parameters

from .configs import LLAMA_3_8B, QWEN3_8B, QWEN3_30B, QWEN36_35B

pytestmark = pytest.mark.trainer

VECTORS = ("norm", "A_log", "dt_bias", "bias")


@pytest.mark.parametrize("config", [LLAMA_3_8B, QWEN3_8B, QWEN3_30B, QWEN36_35B])
def test_parameters_are_those_of_the_model_itself(config: dict[str, Any]) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    layers = 4
    small = {**config, "num_hidden_layers": layers}
    if "max_window_layers" in config:
        small["max_window_layers"] = layers
    made = AutoConfig.for_model(**small)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(made)
    matrices = [
        each.numel()
        for name, each in model.named_parameters()
        if not any(part in name for part in VECTORS)
    ]
    assert parameters(small) == sum(matrices)
