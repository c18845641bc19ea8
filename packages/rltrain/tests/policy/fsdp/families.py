# SPDX-License-Identifier: Apache-2.0
"""Small models of several families, made from their configurations; the same every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

SMALL: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2": {},
    "qwen3": {},
    "llama": {},
    "qwen3_moe": EXPERTS,
    "gemma3_text": {"sliding_window": 12, "layer_types": ["sliding_attention", "full_attention"]},
    "mistral": {"sliding_window": 11},
}
"""What each has beside `SMALL`; windows are shorter than the longest sample of the tests."""
MORE: dict[str, dict[str, Any]] = {
    "gemma2": {},
    "qwen3_next": EXPERTS
    | {
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "shared_expert_intermediate_size": 16,
    },
}
"""Families that are not trained packed."""


def made(family: str, place: Path) -> Path:
    """A checkpoint of a family."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **SMALL, **(FAMILIES | MORE)[family])
    AutoModelForCausalLM.from_config(config).save_pretrained(place)
    return place
