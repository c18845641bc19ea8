# SPDX-License-Identifier: Apache-2.0
"""The gradient does not depend on how the batch is cut: ranks, caps, order, packing."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from rltrain.batch.stamp import stamp
from rltrain.objective.aggregate import AggregateConfig
from rltrain.objective.config import ObjectiveConfig
from rltrain.objective.loss import LOSSES
from rltrain.objective.terms import kl_to
from rltrain.objective.types import Tokens
from rltrain.policy.fused import plain

sys.path.insert(0, str(Path(__file__).parent))  # ranks.py is a program of its own, too
import ranks
from small import gradients, qwen3

pytestmark = pytest.mark.trainer

WORLDS, CAPS = (1, 2, 4), (60, 150, 2000)
LIMIT = {"float64": 1e-10, "float32": 1e-5}
SEEDS = {
    ("dppo", "prompt_mean"): (0, 1),
    ("gspo", "sequence_mean"): (2,),
    ("ppo", "token_mean"): (3,),
}
"""Orders of the samples, by loss and aggregation."""


def cases(**more: Any) -> list[dict[str, Any]]:
    return [
        {"dtype": dtype, "cap": cap, "seed": seed, "loss": loss, "aggregate": aggregate, **more}
        for dtype, cap, (loss, aggregate) in product(LIMIT, CAPS, SEEDS)
        for seed in SEEDS[loss, aggregate]
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qwen3(tmp_path_factory.mktemp("model") / "qwen3")


@pytest.fixture(scope="module")
def found(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Any]]:
    """By number of ranks."""
    place = tmp_path_factory.mktemp("ranks")
    return {world: gradients(place / str(world), model, world, cases()) for world in WORLDS}


def padded(model: Path, dtype: str, loss: str, aggregate: str) -> tuple[float, torch.Tensor]:
    """One sample after the other in rows of one length, by the model alone, with all its logits."""
    from transformers import AutoModelForCausalLM

    policy = AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype))
    made = ranks.samples()
    stamped = stamp(ObjectiveConfig(aggregate=AggregateConfig(name=aggregate)), made)  # type: ignore[arg-type]
    length = max(map(len, made))
    ids, there = torch.zeros(len(made), length, dtype=torch.int64), torch.zeros(len(made), length)
    for row, each in enumerate(made):
        ids[row, : len(each)] = torch.from_numpy(each.token_ids)
        there[row, : len(each)] = 1
    hidden = policy.get_decoder()(input_ids=ids, attention_mask=there).last_hidden_state
    cost = torch.zeros((), dtype=torch.float64)
    for row, each in enumerate(made):
        trained = torch.from_numpy(each.mask).nonzero().flatten()
        score = plain(hidden[row, trained - 1], policy.lm_head.weight, ids[row, trained])
        count = len(trained)
        tokens = Tokens(
            logp=score.logp,
            rollout=torch.from_numpy(each.logprobs)[trained],
            advantage=stamped.advantage[row].repeat(count),
            mask=torch.ones(count, dtype=torch.bool),
            sample=torch.zeros(count, dtype=torch.int64),
        )
        value = LOSSES[loss]()(tokens).value - ranks.ENTROPY * score.entropy
        near = ranks.reference_of(ids[row, trained])
        value = value + ranks.KL * kl_to(near, score.logp, tokens.mask)
        cost = cost + stamped.weight[row] * value.sum()
    policy.zero_grad()
    cost.backward()
    whole = [each.grad.flatten() for each in policy.parameters()]
    return float(cost.detach()), torch.cat(whole)


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize(("loss", "aggregate"), SEEDS)
def test_ranks_caps_and_order_change_no_gradient_and_nor_does_packing(
    found: dict[int, list[Any]], model: Path, dtype: str, loss: str, aggregate: str
) -> None:
    cost, right = padded(model, dtype, loss, aggregate)
    compared = 0
    for world, results in found.items():
        for case, result in zip(cases(), results, strict=True):
            if (case["dtype"], case["loss"], case["aggregate"]) != (dtype, loss, aggregate):
                continue
            off = float((result["gradient"] - right).norm() / right.norm())
            assert off <= LIMIT[dtype], (world, case)
            assert result["loss"] == pytest.approx(cost, rel=1e-4 if dtype == "float32" else 1e-10)
            compared += 1
    assert compared == len(WORLDS) * len(CAPS) * len(SEEDS[loss, aggregate])


def test_a_batch_is_cut_as_differently_as_it_can_be(found: dict[int, list[Any]]) -> None:
    counts = {each["batches"] for results in found.values() for each in results}
    assert min(counts) == 1
    assert max(counts) >= 7


def test_scoring_between_steps_leaves_no_gradient_and_changes_none(
    model: Path, tmp_path: Path
) -> None:
    """What a forward pass without a gradient leaves whole is no parameter of the optimizer's."""
    _, right = padded(model, "float64", "dppo", "prompt_mean")
    case = {"dtype": "float64", "cap": 60, "seed": 0, "loss": "dppo", "aggregate": "prompt_mean"}
    for result in gradients(tmp_path / "ranks", model, 2, [{**case, "scored": True}] * 3):
        assert float((result["gradient"] - right).norm() / right.norm()) <= LIMIT["float64"]


@pytest.mark.parametrize("dtype", LIMIT)
def test_weights_stamped_by_each_rank_break_it(model: Path, tmp_path: Path, dtype: str) -> None:
    """The bug that this is to find, seeded."""
    _, right = padded(model, dtype, "dppo", "prompt_mean")
    case = {"dtype": dtype, "cap": 2000, "seed": 0, "loss": "dppo", "aggregate": "prompt_mean"}
    (result,) = gradients(tmp_path / "ranks", model, 2, [{**case, "by_rank": True}])
    assert float((result["gradient"] - right).norm() / right.norm()) > 100 * LIMIT[dtype]
