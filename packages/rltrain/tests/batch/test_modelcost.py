# SPDX-License-Identifier: Apache-2.0
"""Published configurations cost what is published of them; what they leave open is named."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rltrain.batch.cost import Cost
from rltrain.batch.modelcost import cost_of
from rltrain.refused import Refused

QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "vocab_size": 151_936,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "max_window_layers": 48,
    "sliding_window": None,
    "use_sliding_window": False,
}
QWEN35_35B: dict[str, Any] = {
    "model_type": "qwen3_5_moe",
    "text_config": {
        "model_type": "qwen3_5_moe_text",
        "attn_output_gate": True,
        "vocab_size": 248_320,
        "hidden_size": 2048,
        "num_hidden_layers": 40,
        "full_attention_interval": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "moe_intermediate_size": 512,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "shared_expert_intermediate_size": 512,
        "mtp_num_hidden_layers": 1,
    },
    "vision_config": {"hidden_size": 1152, "num_heads": 16},
}
QWEN3_17B: dict[str, Any] = {
    "model_type": "qwen3",
    "vocab_size": 151_936,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "sliding_window": None,
    "use_sliding_window": False,
}
LLAMA_8B: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "vocab_size": 129_280,
    "hidden_size": 7168,
    "intermediate_size": 18_432,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1,
}
GEMMA3_1B: dict[str, Any] = {
    "model_type": "gemma3_text",
    "vocab_size": 262_144,
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "num_hidden_layers": 26,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
}


def ratio(config: dict[str, Any]) -> float:
    cost = cost_of(config)
    return cost.a / cost.b


def without_output(config: dict[str, Any]) -> Cost:
    cost = cost_of(config)
    return Cost(a=cost.a - 2 * config["hidden_size"] * config["vocab_size"], b=cost.b)


# --- what is published ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        pytest.param(QWEN3_30B, 3.35, id="Qwen3-30B-A3B"),
        pytest.param(LLAMA_8B, 8.03, id="Llama-3.1-8B"),
        pytest.param(DEEPSEEK_V3, 37.55, id="DeepSeek-V3"),
    ],
)
def test_active_parameters_are_the_published_ones(config: dict[str, Any], billions: float) -> None:
    """3.3, 8.03 and 37 billion are published, to which the table of tokens belongs."""
    table = config["vocab_size"] * config["hidden_size"]
    assert (cost_of(config).a / 2 + table) / 1e9 == pytest.approx(billions, abs=0.005)


def test_tokens_and_pairs_of_published_models_stand_in_these_ratios() -> None:
    assert ratio(QWEN3_30B) == pytest.approx(15_471, abs=1)
    assert ratio(QWEN3_17B) == pytest.approx(30_002, abs=1)
    assert ratio(LLAMA_8B) == pytest.approx(57_256, abs=1)
    assert ratio(QWEN35_35B) == pytest.approx(73_850, abs=1)


def test_the_ratio_of_the_packers_benchmark_is_that_of_layers_twelve_squares_large() -> None:
    cost = without_output(QWEN3_17B)
    assert cost.a == 28 * 2 * 12 * 2048**2
    assert cost.a / cost.b == 12 * 2048 == 24_576


# --- layers of several kinds ----------------------------------------------------------------------


def test_a_hybrid_pays_pairs_in_a_quarter_of_its_layers() -> None:
    text = QWEN35_35B["text_config"]
    assert cost_of(QWEN35_35B).b == 40 / 4 * 2 * text["num_attention_heads"] * text["head_dim"]
    every = cost_of({**text, "layer_types": ["full_attention"] * 40})
    assert every.b == 4 * cost_of(QWEN35_35B).b


def test_layer_types_go_before_an_interval() -> None:
    text = QWEN35_35B["text_config"]
    kinds = ["linear_attention"] * 39 + ["full_attention"]
    assert cost_of({**text, "layer_types": kinds}).b == cost_of(text).b / 10
    told = [*(["linear_attention"] * 3), "full_attention"] * 10
    assert cost_of({**text, "layer_types": told}) == cost_of(text)


def test_windows_are_paid_by_token() -> None:
    narrow, wide = cost_of(GEMMA3_1B), cost_of({**GEMMA3_1B, "sliding_window": 1024})
    full = cost_of({**GEMMA3_1B, "sliding_window": None})
    assert narrow.b == wide.b == full.b * 4 / 26
    assert wide.a - narrow.a == 22 * 512 * 4 * 4 * 256
    assert narrow.a - full.a == 22 * 512 * 4 * 4 * 256


def test_a_window_that_is_not_used_costs_nothing() -> None:
    assert cost_of({**QWEN3_17B, "sliding_window": 4096}) == cost_of(QWEN3_17B)
    used = {**QWEN3_17B, "sliding_window": 4096, "use_sliding_window": True}
    assert cost_of({**used, "max_window_layers": 28}) == cost_of(QWEN3_17B)
    assert cost_of({**used, "max_window_layers": 7}).b == cost_of(QWEN3_17B).b / 4


def test_families_slide_as_they_do_where_their_config_does_not_say() -> None:
    pattern = {key: value for key, value in GEMMA3_1B.items() if key != "sliding_window_pattern"}
    assert cost_of(pattern) == cost_of(GEMMA3_1B)
    second = cost_of({**pattern, "model_type": "gemma2"})
    assert second == cost_of({**GEMMA3_1B, "sliding_window_pattern": 2})
    assert cost_of({**LLAMA_8B, "model_type": "mistral", "sliding_window": 4096}).b == 0


# --- experts --------------------------------------------------------------------------------------


def test_dense_layers_of_a_mixture_are_told_in_four_ways() -> None:
    more = 2 * 3 * 2048 * (6144 - 8 * 768) - 2 * 2048 * 128
    dense = cost_of(QWEN3_30B).a + more
    assert cost_of({**QWEN3_30B, "mlp_only_layers": [5]}).a == dense
    assert cost_of({**QWEN3_30B, "first_k_dense_replace": 1}).a == dense
    kinds = ["dense", *["sparse"] * 47]
    assert cost_of({**QWEN3_30B, "mlp_layer_types": kinds}).a == dense
    assert cost_of({**QWEN3_30B, "decoder_sparse_step": 2}).a == cost_of(QWEN3_30B).a + 24 * more


def test_how_many_experts_there_are_costs_only_the_router() -> None:
    few = cost_of({**QWEN3_30B, "num_experts": 64})
    assert cost_of(QWEN3_30B).a - few.a == 48 * 2 * 2048 * 64
    renamed = {key: value for key, value in QWEN3_30B.items() if key != "num_experts"}
    assert cost_of({**renamed, "num_local_experts": 128}) == cost_of(QWEN3_30B)
    assert cost_of({**renamed, "n_routed_experts": 128}) == cost_of(QWEN3_30B)


# --- what a config leaves open --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "key"),
    [
        *[(QWEN3_17B, key) for key in ("hidden_size", "vocab_size", "num_hidden_layers")],
        *[(QWEN3_17B, key) for key in ("num_attention_heads", "head_dim", "intermediate_size")],
        (QWEN3_30B, "num_experts_per_tok"),
        (QWEN3_30B, "moe_intermediate_size"),
        (DEEPSEEK_V3, "qk_rope_head_dim"),
        (DEEPSEEK_V3, "v_head_dim"),
        (DEEPSEEK_V3, "moe_intermediate_size"),
        *[(QWEN35_35B["text_config"], key) for key in ("linear_key_head_dim", "head_dim")],
    ],
)
def test_a_missing_key_is_named_in_one_line(config: dict[str, Any], key: str) -> None:
    little = {name: value for name, value in config.items() if name != key}
    with pytest.raises(Refused, match=rf"^config\.json: {key} is missing; .*: add it$") as caught:
        cost_of(little)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "more",
    [
        {"sliding_window": 4096, "use_sliding_window": True, "model_type": "unheard"},
        {"attention_chunk_size": 8192},
        {"linear_num_value_heads": 32},
    ],
)
def test_layers_of_kinds_that_are_not_told_are_asked_for(more: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="layer_types is missing"):
        cost_of({**LLAMA_8B, **more})


def test_heads_are_as_wide_as_the_model_divides_only_where_it_does() -> None:
    assert cost_of(LLAMA_8B) == cost_of({**LLAMA_8B, "head_dim": 128})
    with pytest.raises(Refused, match="head_dim is missing"):
        cost_of({**LLAMA_8B, "num_attention_heads": 96})


def test_heads_without_groups_have_keys_of_their_own() -> None:
    alone = {key: value for key, value in LLAMA_8B.items() if key != "num_key_value_heads"}
    assert cost_of(alone) == cost_of({**LLAMA_8B, "num_key_value_heads": 32})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"layer_types": ["mamba"] * 32}, "'mamba'; known here are chunked_attention, full_att"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1, num_hidden_layers is 32"),
        ({"index_topk": 2048}, "index_topk is 2048, whose cost is not known here"),
        ({"moe_layer_freq": 2}, "moe_layer_freq is 2, whose cost is not known here"),
        ({"hidden_size": "4096"}, "hidden_size is '4096'; give a whole number of 1 or more"),
        ({"hidden_size": 0}, "hidden_size is 0; give a whole number of 1 or more"),
    ],
)
def test_what_is_not_counted_is_named(more: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        cost_of({**LLAMA_8B, **more})


def test_nothing_is_loaded_that_a_planner_lacks() -> None:
    code = "import sys, rltrain.batch.modelcost; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
    assert run.stdout.strip() == b"False"
