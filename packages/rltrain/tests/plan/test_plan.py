# SPDX-License-Identifier: Apache-2.0
"""Whole plans: which ceiling binds, the sentence, the document, the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from rltrain.buffer.config import BufferConfig
from rltrain.cluster.config import HERE
from rltrain.plan.advice import advice
from rltrain.plan.assumptions import (
    Assumptions,
    EngineAssumptions,
    LengthAssumptions,
    MemoryAssumptions,
    TrainerAssumptions,
)
from rltrain.plan.document import document
from rltrain.plan.page import to_html
from rltrain.plan.plan import Plan, planned
from rltrain.plan.published import Published
from rltrain.plan.show import show
from rltrain.rollout.config import RolloutConfig

from .configs import QWEN36_35B, asked, tables


def rollout(concurrency: int) -> RolloutConfig:
    return RolloutConfig(concurrency=concurrency, context_tokens=16_000, kv_cache_gib=2)


def on_cpus(concurrency: int, told: Assumptions, staleness: int = 3) -> Plan:
    made = tables(
        rollout=rollout(concurrency), cluster=HERE, buffer=BufferConfig(staleness=staleness)
    )
    return planned(asked(told=replace(told, cores=0.0), tables=made))


QUICK = Assumptions(
    lengths=LengthAssumptions(median=2_000, p95=4_000),
    engine=EngineAssumptions(step_s=0.05, sequence_s=0.0, prefill_s=0.0),
    trainer=TrainerAssumptions(fixed_s=20.0, token_s=0.0, sync_s=1.0),
)
"""2 GiB hold about 10 trials of Qwen3-8B, 144 KiB a token."""


def test_staleness_binds_where_more_is_asked_for_than_it_lets_be_under_way() -> None:
    roomy = replace(QUICK, memory=MemoryAssumptions(kv_bytes=0.01))
    plan = on_cpus(500, roomy, staleness=1)
    assert plan.binds == "staleness"
    assert plan.staleness == round(plan.own.went.running)
    assert plan.staleness <= 2 * 4 * 4
    assert plan.useful == plan.staleness
    assert advice(plan).startswith(f"staleness binds: {plan.staleness} of 500 slots fill")


def test_kv_memory_binds_where_it_holds_fewer_than_staleness_lets_be_under_way() -> None:
    plan = on_cpus(500, QUICK, staleness=15)
    assert plan.binds == "kv"
    assert plan.own.kv.ceiling == plan.own.slots == plan.useful < plan.staleness
    assert plan.own.went.running == pytest.approx(plan.own.slots, rel=0.1)
    assert f"it holds {plan.own.slots} of the 500 trials asked for" in advice(plan)


def test_slots_bind_where_fewer_are_asked_for_than_either_allows() -> None:
    plan = on_cpus(4, QUICK, staleness=7)
    assert plan.binds == "slots"
    assert plan.own.slots == 4
    assert advice(plan).startswith("slots bind: 4 are asked for")


def test_a_trainer_that_never_waits_is_told_to_be_what_bounds() -> None:
    slow = replace(QUICK, trainer=TrainerAssumptions(fixed_s=5_000.0, token_s=0.0, sync_s=1.0))
    plan = on_cpus(4, slow)
    assert plan.own.went.waiting == pytest.approx(0.0, abs=0.02)
    assert "only a faster trainer would take more steps" in advice(plan)


def test_a_split_of_the_same_nodes_that_is_faster_is_named() -> None:
    made = tables(rollout=rollout(24))
    heavy = replace(QUICK, trainer=TrainerAssumptions(fixed_s=0.0, mfu=0.0005, sync_s=1.0))
    plan = planned(asked(told=heavy, tables=made))
    assert "1 : 2 would take" in advice(plan)


def test_more_nodes_are_faster_and_are_no_advice() -> None:
    """An engine that is the bottleneck: twice as many do more, at twice the price."""
    slow = replace(
        QUICK, engine=EngineAssumptions(step_s=0.0, sequence_s=0.05, prefill_s=0.0), faults=0.0
    )
    plan = planned(asked(told=slow, tables=tables(rollout=rollout(24))))
    (larger,) = [row for row in plan.rows if row.split.name == "4 : 1"]
    assert plan.steps_per_h(larger) > 1.3 * plan.steps_per_h(plan.own)
    assert "4 : 1" not in advice(plan)


def test_the_same_plan_is_made_again() -> None:
    one, other = (document(on_cpus(8, QUICK)) for _ in range(2))
    assert one == other
    changed = planned(
        replace(asked(told=QUICK, tables=tables(rollout=rollout(8), cluster=HERE)), seed=1)
    )
    assert document(changed)["rows"] != one["rows"]


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A hybrid model on GPUs, as a published run."""
    told = Published(model="qwen3.6-35b-a3b", concurrency=24, known=())
    return planned(
        asked(
            config=QWEN36_35B,
            told=Assumptions(gpu="h100"),
            fixed=frozenset({"gpu"}),
            published=told,
        )
    )


def test_whether_the_interval_contains_what_was_published_is_told(plan: Plan) -> None:
    told = document(plan)
    low, high = told["ceilings"]["kv_interval"]
    assert low < told["ceilings"]["kv"] < high
    assert told["published"]["contained"] is (low <= 24 <= high) is False
    assert f"The interval {low} to {high} does not contain it" in shown(plan)


def test_the_document_has_every_figure_and_is_plain_json(plan: Plan) -> None:
    told = json.loads(json.dumps(document(plan), allow_nan=False))
    assert told["schema"] == "rltrain.plan/1"
    assert told["ceilings"]["staleness_whole"] == 64
    assert told["assumptions"]["gpu"] == "h100"
    assert told["set"] == ["gpu"]
    assert [row["own"] for row in told["rows"]].count(True) == 1
    first = told["rows"][0]
    assert first["slot_use"] == pytest.approx(first["running"] / first["concurrency"])
    assert first["stalest"] <= 3
    for row in told["rows"]:
        assert row["training"] + row["waiting"] <= 1 + 1e-9


def test_no_sample_is_above_the_bound_of_its_row(plan: Plan) -> None:
    assert all(row.went.stalest <= row.split.staleness for row in plan.rows)


def shown(plan: Plan) -> str:
    console = Console(file=StringIO(), width=200)
    show(plan, console)
    assert isinstance(console.file, StringIO)
    return " ".join(console.file.getvalue().split())


def test_the_table_has_every_row_and_the_sentence_is_last(plan: Plan) -> None:
    text = shown(plan)
    assert text.endswith(advice(plan))
    assert "2 : 1 (recipe)" in text
    assert all(row.split.name in text for row in plan.rows)
    assert "gpu h100 (set)" in text
    assert "engine.step_s reckoned" in text


def outside(page: str) -> Iterator[str]:
    yield from re.findall(r"<(?:script|link|img|iframe)\b", page)
    yield from re.findall(r"(?:https?:)?//\w+\.\w+", page)


def test_the_page_needs_nothing_else_and_runs_nothing(plan: Plan) -> None:
    page = to_html(plan)
    assert page.startswith("<!doctype html>\n<html")
    assert "default-src &#x27;none&#x27;" in page
    assert list(outside(page)) == []
    assert all(row.split.name in page for row in plan.rows)


def test_a_recipe_s_name_is_text_on_the_page(plan: Plan) -> None:
    evil = replace(plan, asked=replace(plan.asked, name="<script>x</script>"))
    assert "<script>" not in to_html(evil)
