# SPDX-License-Identifier: Apache-2.0
"""Bytes of published architectures, against figures worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rltrain.plan.assumptions import MemoryAssumptions
from rltrain.plan.memory import expert_parameters, layout, parameters
from rltrain.refused import Refused

from .configs import (
    DEEPSEEK_V2_LITE,
    GEMMA_3_4B,
    LLAMA_3_8B,
    QWEN3_8B,
    QWEN3_30B,
    QWEN35_397B,
    QWEN36_35B,
)

KIB = 1024
TOLD = MemoryAssumptions(states=0.0)


@pytest.mark.parametrize(
    ("config", "tp", "token"),
    [
        (LLAMA_3_8B, 1, 128 * KIB),  # 2 x 8 heads x 128 x 2 bytes x 32 layers
        (LLAMA_3_8B, 4, 32 * KIB),
        (LLAMA_3_8B, 16, 16 * KIB),  # no less than a head a GPU
        (QWEN3_8B, 1, 144 * KIB),  # 2 x 8 x 128 x 2 x 36
        (QWEN3_30B, 1, 96 * KIB),  # 2 x 4 x 128 x 2 x 48
        (DEEPSEEK_V2_LITE, 1, (512 + 64) * 2 * 27),
        (DEEPSEEK_V2_LITE, 8, (512 + 64) * 2 * 27),  # a latent cache is whole on each GPU
        (QWEN36_35B, 1, 20 * KIB),  # 2 x 2 x 256 x 2 x the 10 full layers of 40
        (QWEN36_35B, 8, 10 * KIB),
        (QWEN35_397B, 8, 15 * KIB),
    ],
)
def test_a_token_of_kv_takes_what_is_worked_out_by_hand(
    config: dict[str, Any], tp: int, token: int
) -> None:
    assert layout(config, tp, TOLD).token == token


def test_a_cache_of_one_byte_an_element_takes_half() -> None:
    told = MemoryAssumptions(kv_bytes=1.0)
    assert layout(LLAMA_3_8B, 1, told).token == 64 * KIB


def test_a_state_of_linear_layers_does_not_grow_with_the_sequence() -> None:
    """30 layers, on one of 8 GPUs: 4 heads of 128 x 128 in float32, and 3 columns of 1,024 channels
    in bfloat16."""
    found = layout(QWEN36_35B, 8, TOLD)
    assert found.state == 30 * (4 * 128 * 128 * 4 + 3 * 1024 * 2)
    assert found.sequence(0) == found.state
    assert found.sequence(30_000) - found.sequence(20_000) == 10_000 * 10 * KIB


def test_states_that_are_kept_for_a_prefix_are_counted() -> None:
    """With a state at each block the three linear layers of four take as much again as the full
    one, each."""
    kept = layout(QWEN36_35B, 8, MemoryAssumptions(states=1.0))
    none = layout(QWEN36_35B, 8, TOLD)
    assert kept.block == 262
    more = kept.sequence(100_000) - none.sequence(100_000)
    assert more / (100_000 * kept.token) == pytest.approx(3.0, rel=0.01)


def test_a_window_takes_no_more_than_its_tokens() -> None:
    """Gemma 3: every sixth layer is full, so 5 of 34; 29 remember 1,024 tokens."""
    found = layout(GEMMA_3_4B, 1, TOLD)
    layer = 2 * 4 * 256 * 2
    assert found.token == 5 * layer
    assert found.windows == ((1024, 29 * layer),)
    assert found.sequence(500) == 500 * 34 * layer
    assert found.sequence(5_000) == 5_000 * 5 * layer + 1024 * 29 * layer


@pytest.mark.parametrize(
    ("config", "billions", "name"),
    [
        (LLAMA_3_8B, 8.03, "8B"),
        (QWEN3_8B, 8.19, "8.2B"),
        (QWEN3_30B, 30.5, "30.5B"),
        (DEEPSEEK_V2_LITE, 15.7, "15.7B"),
        (QWEN36_35B, 34.7, "35B"),
        (QWEN35_397B, 396.3, "397B"),
    ],
)
def test_parameters_come_to_what_the_model_is_called(
    config: dict[str, Any], billions: float, name: str
) -> None:
    assert parameters(config) / 1e9 == pytest.approx(billions, rel=0.005), name


def test_most_parameters_of_a_mixture_are_experts() -> None:
    assert expert_parameters(QWEN36_35B) == 40 * 256 * 3 * 2048 * 512
    assert expert_parameters(DEEPSEEK_V2_LITE) == 26 * 64 * 3 * 2048 * 1408
    assert expert_parameters(LLAMA_3_8B) == 0


def test_weights_are_divided_over_the_gpus_of_an_engine() -> None:
    one, eight = (layout(QWEN36_35B, tp, TOLD).weights for tp in (1, 8))
    assert one == 8 * eight == 2 * parameters(QWEN36_35B)


def test_what_a_config_leaves_open_is_refused_by_its_key() -> None:
    spoiled = {**LLAMA_3_8B, "hidden_size": None}
    with pytest.raises(Refused, match=r"config\.json: hidden_size is missing"):
        layout(spoiled, 1, TOLD)
