# SPDX-License-Identifier: Apache-2.0
"""Speeds of hardware, worked out by hand."""

from __future__ import annotations

import pytest

from rltrain.batch.modelcost import cost_of
from rltrain.cluster.config import HERE, ClusterConfig
from rltrain.plan.assumptions import (
    GPUS,
    Assumptions,
    EngineAssumptions,
    MemoryAssumptions,
    TrainerAssumptions,
)
from rltrain.plan.hardware import engine_of, trainer_of
from rltrain.plan.memory import expert_parameters, layout, parameters

from .configs import LLAMA_3_8B, QWEN36_35B

ONE = ClusterConfig(inference_nodes=1, training_nodes=2, engines=1, engine_tp=8)
FULL = Assumptions(
    gpu="h100",
    memory=MemoryAssumptions(states=0.0),
    engine=EngineAssumptions(launch_s=0.0, bandwidth=1.0, mfu=1.0),
)


def test_a_step_reads_the_weights_and_each_sequence_its_cache() -> None:
    """By 8 GPUs of 3,350 GB/s; the FLOPs of a token are added."""
    found = engine_of(LLAMA_3_8B, FULL, ONE, live=10_000)
    assert found.step_s == pytest.approx(2 * parameters(LLAMA_3_8B) / 8 / 3350e9)
    cost = cost_of(LLAMA_3_8B)
    flops = (cost.a + 2 * cost.b * 10_000) / (8 * 989e12)
    assert found.sequence_s == pytest.approx(10_000 * 16 * 1024 / 3350e9 + flops)
    assert found.read_s == pytest.approx(flops)


def test_a_step_of_one_sequence_meets_the_experts_that_its_token_takes() -> None:
    """8 of 256; with many it meets all of the weights."""
    found = engine_of(QWEN36_35B, FULL, ONE, live=0)
    whole = layout(QWEN36_35B, 8, FULL.memory).weights / 3350e9
    experts = 2 * expert_parameters(QWEN36_35B) / 8 / 3350e9
    one = found.token_s(1, read=0) - found.sequence_s
    assert one == pytest.approx(whole - experts * (1 - 8 / 256))
    assert found.token_s(1000, read=0) - 1000 * found.sequence_s == pytest.approx(whole)


def test_what_was_told_is_not_reckoned() -> None:
    told = Assumptions(engine=EngineAssumptions(step_s=0.5, sequence_s=0.25, prefill_s=0.125))
    found = engine_of(QWEN36_35B, told, ONE, live=10_000)
    assert (found.step_s, found.experts_s, found.sequence_s, found.read_s) == (0.5, 0, 0.25, 0.125)
    partly = Assumptions(engine=EngineAssumptions(prefill_s=0.125))
    mixed = engine_of(QWEN36_35B, partly, ONE, live=10_000)
    assert mixed.read_s == 0.125
    assert mixed.experts_s > 0


def test_a_trainer_takes_three_forward_passes_and_a_fourth_where_it_makes_them_again() -> None:
    told = Assumptions(gpu="b200", trainer=TrainerAssumptions(fixed_s=7.0, mfu=0.5))
    cost, flops = cost_of(QWEN36_35B), GPUS["b200"].tflops * 1e12 * 0.5 * 16
    for again, times in ((False, 3), (True, 4)):
        found = trainer_of(QWEN36_35B, told, ONE, again=again)
        expected = 7.0 + times * (cost.a * 300 + cost.b * (100**2 + 200**2)) / flops
        assert found.step_s((100, 200)) == pytest.approx(expected)


def test_on_cpus_a_trainer_has_the_speed_that_is_assumed() -> None:
    told = Assumptions(trainer=TrainerAssumptions(fixed_s=0.0, cpu_gflops=10.0))
    found = trainer_of(LLAMA_3_8B, told, HERE, again=False)
    assert found.token_s == pytest.approx(3 * cost_of(LLAMA_3_8B).a / 1e10)
    measured = Assumptions(trainer=TrainerAssumptions(token_s=0.25))
    assert trainer_of(LLAMA_3_8B, measured, HERE, again=True).token_s == 0.25
