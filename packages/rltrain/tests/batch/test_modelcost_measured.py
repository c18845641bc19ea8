# SPDX-License-Identifier: Apache-2.0
"""A cost read from a configuration is what a model of it does, counted by torch.

Counts are whole numbers and the formula has no approximation, so they must be equal; only the fit
of a polynomial through three of them rounds, by less than one in 1e9.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from rltrain.batch.modelcost import cost_of

pytestmark = pytest.mark.trainer

EXACT = 1e-9
LENGTHS = (64, 128, 256)
"""Whole chunks of linear attention, and longer than the windows."""
WINDOW = 24
SHAPE: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 80,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
}
MIXTURE = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}
SHARED = {"shared_expert_intermediate_size": 40}
DELTA = {
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
GROUPS = {"n_routed_experts": 8, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1}
LATENT = {
    "head_dim": 6,
    "num_key_value_heads": 4,
    "kv_lora_rank": 12,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6,
    "v_head_dim": 20,
}
SQUARES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"head_dim": None}),
    "qwen2": ("Qwen2", {"head_dim": 8}),
    "qwen3": ("Qwen3", {}),
    "qwen3_moe": ("Qwen3Moe", {**MIXTURE, "num_experts": 8, "mlp_only_layers": [1]}),
    "qwen3_moe, every second": (
        "Qwen3Moe",
        {**MIXTURE, "num_experts": 8, "decoder_sparse_step": 2},
    ),
    "qwen2_moe": ("Qwen2Moe", {**MIXTURE, **SHARED, "num_experts": 8, "head_dim": 8}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "glm4_moe": ("Glm4Moe", {**MIXTURE, **GROUPS, "n_shared_experts": 2}),
    "deepseek_v3": ("DeepseekV3", {**MIXTURE, **GROUPS, **LATENT, "q_lora_rank": 14}),
    "deepseek_v3, whole queries": (
        "DeepseekV3",
        {**MIXTURE, **GROUPS, **LATENT, "q_lora_rank": None},
    ),
    "glm4_moe_lite": ("Glm4MoeLite", {**MIXTURE, **GROUPS, **LATENT, "q_lora_rank": 14}),
    "qwen3_next": ("Qwen3Next", {**MIXTURE, **SHARED, **DELTA, "num_experts": 8}),
    "qwen3_5": ("Qwen3_5", DELTA),
    "qwen3_5_moe": ("Qwen3_5Moe", {**MIXTURE, **SHARED, **DELTA, "num_experts": 8}),
}
WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("Qwen3", {}),
    "qwen2": ("Qwen2", {"head_dim": 8, "use_sliding_window": True, "max_window_layers": 1}),
    "mistral": ("Mistral", {}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "gemma2": ("Gemma2", {}),
    "gemma3": ("Gemma3", {"num_hidden_layers": 7}),
}


def made(family: str, keys: dict[str, Any]) -> Any:
    """A small model, whose attention multiplies whole squares."""
    config = configured(family, {**SHAPE, **keys})
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    return transformers_class(f"{family}ForCausalLM")(config).eval()


def configured(family: str, keys: dict[str, Any]) -> Any:
    """Of the language model, where the family also sees."""
    text = "Text" if family in ("Gemma3", "Qwen3_5", "Qwen3_5Moe") else ""
    return transformers_class(f"{family}{text}Config")(**keys)


def transformers_class(name: str) -> Any:
    import transformers

    return getattr(transformers, name)


def said(config: Any) -> dict[str, Any]:
    """As its ``config.json`` says it."""
    return json.loads(config.to_json_string())


def solved(system: torch.Size, right: torch.Size, *_: Any, **__: Any) -> int:
    """A triangular system of n unknowns is n² FLOPs a column; torch counts none."""
    return right.numel() * system[-1]


def counted(model: Any, length: int) -> int:
    """FLOPs of a forward pass over one sample."""
    solves = {torch.ops.aten.linalg_solve_triangular: solved}
    ids = torch.arange(length)[None] % 96
    with FlopCounterMode(display=False, custom_mapping=solves) as counter, torch.no_grad():
        model(ids, use_cache=False)
    return counter.get_total_flops()


def fitted(counts: list[float]) -> tuple[float, float, float]:
    """What is once for a sample, by token, and by token squared."""
    powers = np.vander(LENGTHS, 3, increasing=True).astype(float)
    once, token, square = np.linalg.solve(powers, np.array(counts, float))
    return once, token, square


@pytest.mark.parametrize("name", SQUARES)
def test_a_forward_pass_does_what_the_config_says(name: str) -> None:
    family, keys = SQUARES[name]
    model = made(family, keys)
    cost = cost_of(said(model.config))
    once, token, square = fitted([counted(model, length) for length in LENGTHS])
    assert token == pytest.approx(cost.a, rel=EXACT)
    assert square == pytest.approx(2 * cost.b, rel=EXACT), "whole squares, twice the causal half"
    assert once == pytest.approx(padded(model), abs=1e-6 * cost.a)


def padded(model: Any) -> int:
    """Convolutions begin one kernel earlier, and torch counts that."""
    found = [each for each in model.modules() if isinstance(each, torch.nn.Conv1d)]
    return sum(2 * each.weight.numel() * (each.kernel_size[0] - 1) for each in found)


def visible(model: Any, length: int) -> list[int]:
    """Pairs that each layer's mask lets through."""
    seen: list[int] = []

    def look(_: Any, __: Any, told: dict[str, Any]) -> None:
        seen.append(int((told["attention_mask"][0, 0] == 0).sum()))

    layers = [each.self_attn for each in model.model.layers]
    hooks = [each.register_forward_pre_hook(look, with_kwargs=True) for each in layers]
    with torch.no_grad():
        model(torch.arange(length)[None] % 96, use_cache=False)
    for each in hooks:
        each.remove()
    return seen


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_is_paid_by_token_and_full_attention_by_half_a_square(name: str) -> None:
    family, keys = WINDOWS[name]
    model = made(family, {**keys, "sliding_window": WINDOW})
    cost = cost_of(said(model.config))
    pair = 4 * model.model.layers[0].self_attn.o_proj.in_features
    counts: list[float] = []
    for length in LENGTHS:
        pairs = visible(model, length)
        squares = len(pairs) * length * length
        counts.append(counted(model, length) + pair * (sum(pairs) - squares))
    _, token, square = fitted(counts)
    assert square == pytest.approx(cost.b, rel=EXACT, abs=1e-6)
    diagonal = cost.b
    assert token == pytest.approx(cost.a + diagonal, rel=EXACT), "(L² + L) / 2 pairs are causal"


def test_a_chunk_is_paid_by_half_of_it_for_each_token() -> None:
    from transformers.masking_utils import create_chunked_causal_mask

    config = configured("Llama4Text", {**SHAPE, "attention_chunk_size": WINDOW})
    config._attn_implementation = "eager"
    length = 8 * WINDOW
    states = torch.zeros(1, length, SHAPE["hidden_size"])
    mask = create_chunked_causal_mask(
        config=config, inputs_embeds=states, attention_mask=None, past_key_values=None
    )
    pairs = int((mask[0, 0] == 0).sum())
    chunked = {**SHAPE, "attention_chunk_size": WINDOW, "layer_types": ["chunked_attention"] * 4}
    more = cost_of(chunked).a - (cost_of(SHAPE).a)
    pair = 4 * SHAPE["num_attention_heads"] * SHAPE["head_dim"]
    diagonal = length / 2
    assert more * length == 4 * pair * (pairs - diagonal)


# --- published sizes, which have shapes and no numbers --------------------------------------------

PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen3-30B-A3B": ("Qwen3Moe", {"num_hidden_layers": 48, "head_dim": 128}),
    "Qwen3-Next-80B-A3B": ("Qwen3Next", {}),
    "Qwen3.5-35B-A3B": ("Qwen3_5Moe", {}),
    "GLM-4.5-Air": ("Glm4Moe", {"head_dim": 128}),
    "Mixtral-8x7B": ("Mixtral", {}),
}
"""What they have beside the defaults of their classes."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_token_costs_twice_the_parameters_it_passes(name: str) -> None:
    family, keys = PUBLISHED[name]
    config = configured(family, keys)
    with torch.device("meta"):
        model = transformers_class(f"{family}ForCausalLM")(config)
    told = said(config)
    layers = told.get("layer_types", []).count("linear_attention")
    states = layers * told.get("linear_num_value_heads", 0) * state(told)
    assert cost_of(told).a == 2 * passed(model, told) + states


def passed(model: torch.nn.Module, told: dict[str, Any]) -> int:
    """Parameters of matrices, of experts those that are taken; the table of tokens is none."""
    found = dict(model.named_parameters())
    matrices = {name: each for name, each in found.items() if each.ndim > 1}
    total = 0
    for name, each in matrices.items():
        taken = told["num_experts_per_tok"] if ".experts." in name else len(each)
        total += each.numel() // len(each) * taken
    return total - model.get_input_embeddings().weight.numel()


def state(told: dict[str, Any]) -> int:
    """Of a head: three products with the state, and what chunks of 64 tokens do among themselves.

    Those are queries by keys, keys by keys and scores by values, and systems of 64 unknowns with a
    column for each dimension of a key and of a value.
    """
    if "linear_key_head_dim" not in told:
        return 0
    key, value = told["linear_key_head_dim"], told["linear_value_head_dim"]
    among = 2 * 64 * key + 2 * 64 * key + 2 * 64 * value
    return 3 * 2 * key * value + among + 64 * (key + value)


def test_a_model_that_also_sees_costs_what_its_text_part_does() -> None:
    text = configured("Qwen3_5Moe", {})
    whole = transformers_class("Qwen3_5MoeConfig")(text_config=text.to_dict())
    assert "text_config" in said(whole)
    assert cost_of(said(whole)) == cost_of(said(text))
