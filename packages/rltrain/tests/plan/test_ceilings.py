# SPDX-License-Identifier: Apache-2.0
"""How many trials KV memory holds, worked out by hand."""

from __future__ import annotations

import pytest

from rltrain.plan.assumptions import GIB, Assumptions, MemoryAssumptions
from rltrain.plan.ceilings import Place, interval, kv
from rltrain.plan.trials import Population, Trial
from rltrain.refused import Refused

from .configs import LLAMA_3_8B, QWEN36_35B

EVEN = Population(
    groups=((Trial(tokens=8192, prompt=1024, sampled=1000, waits_s=0.0, live=4096.0),),), source=""
)
ON_CPU = Place(engines=1, tp=1, gpus=False, kv_gib=4.0)


def test_memory_by_the_mean_live_footprint_is_the_ceiling() -> None:
    """4,096 live tokens of 128 KiB are half a GiB."""
    found = kv(LLAMA_3_8B, Assumptions(), ON_CPU, EVEN)
    assert found.footprint == GIB / 2
    assert found.tokens == 4 * GIB / (128 * 1024)
    assert found.ceiling == 8
    assert found.sure(8192) == 4
    assert found.live_of(16) == pytest.approx(2048)


def test_a_prompt_that_samples_have_in_common_is_kept_once() -> None:
    """Of 4 on an engine, 1,024 tokens of prompt are a quarter each."""
    place = Place(engines=1, tp=1, gpus=False, kv_gib=4.0, prompts_at_once=4.0)
    found = kv(LLAMA_3_8B, Assumptions(), place, EVEN)
    assert found.footprint == (4096 - 0.75 * 1024) * 128 * 1024
    apart = Assumptions(memory=MemoryAssumptions(shared_prompt=False))
    assert kv(LLAMA_3_8B, apart, place, EVEN).footprint == GIB / 2


def test_a_gpu_has_what_its_weights_and_the_overhead_leave() -> None:
    told = Assumptions(gpu="h100", memory=MemoryAssumptions(utilisation=0.5, overhead_gib=2.0))
    found = kv(LLAMA_3_8B, told, Place(engines=3, tp=1, gpus=True), EVEN)
    assert found.room == (79.6 * 0.5 - 2) * GIB - found.layout.weights
    assert found.ceiling == int(3 * found.room / (GIB / 2))


def test_a_model_that_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(
        Refused,
        match=r"cluster\.engine_tp 1: weights take 64\.6 GiB a GPU, and an engine has 35\.8",
    ):
        kv(
            QWEN36_35B,
            Assumptions(memory=MemoryAssumptions(utilisation=0.5)),
            Place(engines=1, tp=1, gpus=True),
            EVEN,
        )


def test_an_interval_goes_from_the_tightest_to_the_roomiest() -> None:
    def ceiling(told: Assumptions) -> int:
        return round(100 - told.memory.overhead_gib)

    found = interval(Assumptions(), frozenset(), ceiling, 160_000)
    assert (found.low, found.high) == (90, 98)
    assert len(found.spread) == 4
    assert found.contains(90)
    assert not found.contains(99)


def test_what_was_set_is_not_varied() -> None:
    def ceiling(told: Assumptions) -> int:
        return round(100 - told.memory.overhead_gib)

    found = interval(Assumptions(), {"memory.overhead_gib"}, ceiling, 160_000)
    assert (found.low, found.high) == (96, 96)
    assert not any("overhead" in each for each in found.spread)


def test_where_the_tightest_does_not_fit_nothing_is_held() -> None:
    def ceiling(told: Assumptions) -> int:
        if told.memory.overhead_gib > 5:
            raise Refused("does not fit")
        return 7

    found = interval(Assumptions(), frozenset(), ceiling, 160_000)
    assert (found.low, found.high) == (0, 7)
