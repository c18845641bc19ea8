# SPDX-License-Identifier: Apache-2.0
"""What a policy may be asked for beside weights in float32: LoRA, bfloat16, checkpointing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rltrain.batch.cost import Cost
from rltrain.batch.micro import MicroBatch, cut
from rltrain.batch.sample import Sample
from rltrain.batch.stamp import stamp
from rltrain.objective.config import ObjectiveConfig
from rltrain.objective.loss.dppo import Dppo, DppoTopk
from rltrain.objective.terms import TermsConfig
from rltrain.policy.config import LoraConfig, OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import any_rank, joined, seed_step
from rltrain.policy.types import Goal
from rltrain.refused import Refused

sys.path.insert(0, str(Path(__file__).parents[2]))
import recorded

pytestmark = pytest.mark.trainer

GOAL = Goal(loss=Dppo(), terms=TermsConfig())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded.policy(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def batches(model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[MicroBatch]:
    asked = recorded.Asked(groups=3, samples=4, topk=4)
    rows = recorded.record(tmp_path_factory.mktemp("store"), model, asked)
    stamped = stamp(ObjectiveConfig(), [Sample.of(each) for each in rows])
    (mine,) = cut(stamped, Cost(a=1.0, b=0.01), cap=300, ranks=1)
    return mine


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with joined():
        yield


def opened(model: Path, *, rate: float = 1e-3, **more: Any) -> FsdpBackend:
    policy = PolicyConfig(path=str(model), **{"dtype": "float32", **more})
    return FsdpBackend(policy, OptimizerConfig(learning_rate=rate))


def weights(backend: FsdpBackend) -> dict[str, torch.Tensor]:
    return {name: each.clone() for name, each in backend.weights()}


def scored(backend: FsdpBackend, batches: list[MicroBatch]) -> torch.Tensor:
    return torch.cat([backend.score(each).logp for each in batches])


def reloaded(model: Path, given: dict[str, torch.Tensor], place: Path) -> Path:
    """A checkpoint with these weights."""
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    missing, unknown = plain.load_state_dict(given, strict=False)
    assert not missing
    assert not unknown
    plain.save_pretrained(place)
    return place


def test_the_recorded_log_probs_are_the_trainers(model: Path, batches: list[MicroBatch]) -> None:
    rollout = torch.cat([each.rollout for each in batches])
    assert torch.allclose(scored(opened(model), batches), rollout, atol=2e-4)


def test_lora_trains_its_matrices_alone_and_hands_on_whole_weights(
    model: Path, batches: list[MicroBatch], tmp_path: Path
) -> None:
    plain = weights(opened(model))
    backend = opened(model, lora=LoraConfig(rank=4, alpha=8.0))
    began = weights(backend)
    assert {name: each.shape for name, each in began.items()} == {
        name: each.shape for name, each in plain.items()
    }
    assert all(torch.equal(each, plain[name]) for name, each in began.items())
    backend.step(batches, GOAL)
    backend.step(batches, GOAL)
    moved = {name for name, each in weights(backend).items() if not torch.equal(each, plain[name])}
    assert moved == {name for name in plain if name.endswith("_proj.weight")}
    again = opened(reloaded(model, weights(backend), tmp_path / "merged"))
    assert torch.allclose(scored(again, batches), scored(backend, batches), atol=1e-4)
    assert not torch.allclose(scored(again, batches), scored(opened(model), batches), atol=1e-3)


def test_lora_is_kept_and_gone_on_with(
    model: Path, batches: list[MicroBatch], tmp_path: Path
) -> None:
    def told() -> FsdpBackend:
        return opened(model, lora=LoraConfig(rank=4, dropout=0.2))

    whole = told()
    for step in range(2):
        seed_step(0, step, 0)
        whole.step(batches, GOAL)
    whole.save(tmp_path / "kept")
    seed_step(0, 2, 0)
    last = whole.step(batches, GOAL)
    again = told()
    again.restore(tmp_path / "kept")
    seed_step(0, 2, 0)
    assert again.step(batches, GOAL).loss == last.loss
    kept = weights(whole)
    assert all(torch.equal(each, kept[name]) for name, each in weights(again).items())
    unseeded = told()
    unseeded.restore(tmp_path / "kept")
    seed_step(0, 3, 0)
    assert unseeded.step(batches, GOAL).loss != last.loss  # dropout draws


def test_lora_of_layers_there_are_none_of_is_refused(model: Path) -> None:
    with pytest.raises(Refused, match=r"^policy\.lora\.targets: .*nothing_proj"):
        opened(model, lora=LoraConfig(targets=("nothing_proj",)))


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"no config\.json there"):
        opened(tmp_path)


def test_bfloat16_computes_and_float32_keeps(model: Path, batches: list[MicroBatch]) -> None:
    """A step of a rate that bfloat16 weights would not feel is felt."""
    backend = opened(model, dtype="bfloat16", rate=1e-6)
    began = weights(backend)
    assert {each.dtype for each in began.values()} == {torch.float32}
    backend.step(batches, GOAL)
    name = "model.layers.0.mlp.up_proj.weight"
    one, other = began[name], weights(backend)[name]
    felt, felt_narrow = (one != other), (one.bfloat16() != other.bfloat16())
    assert float(felt.float().mean()) > 0.5
    assert float(felt_narrow.float().mean()) < 0.05


def test_bfloat16_scores_near_float32_and_nearer_with_logits_in_float32(
    model: Path, batches: list[MicroBatch]
) -> None:
    """Against the same bfloat16 states, multiplied in float64."""
    right = scored(opened(model), batches)
    off = {
        logits: float(
            (scored(opened(model, dtype="bfloat16", logits=logits), batches) - right).abs().mean()
        )
        for logits in ("float32", "computed")
    }
    assert 0 < off["float32"] < off["computed"] < 0.1


def test_checkpointing_changes_no_gradient(model: Path, batches: list[MicroBatch]) -> None:
    found: list[dict[str, torch.Tensor]] = []
    for checkpointing in (False, True):
        backend = opened(model, dtype="float64", checkpointing=checkpointing)
        backend.gradients(batches, GOAL)
        found.append({name: each.clone() for name, each in backend.gradient()})
    assert found[0].keys() == found[1].keys()
    assert all(
        torch.allclose(each, found[1][name], atol=0, rtol=1e-12) for name, each in found[0].items()
    )


def test_alternatives_are_scored_as_by_all_logits(model: Path, batches: list[MicroBatch]) -> None:
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    backend = opened(model)
    for batch in batches:
        with torch.no_grad():
            logits = plain(
                batch.ids[None], position_ids=batch.positions[None], use_cache=False
            ).logits[0]
            _, _, topk = backend._scorer(batch)
        assert batch.topk_ids is not None
        right = logits[batch.states].log_softmax(-1).gather(1, batch.topk_ids.long())
        assert torch.allclose(topk, right, atol=1e-4)


def test_dppo_topk_takes_a_step_by_what_the_model_says(
    model: Path, batches: list[MicroBatch]
) -> None:
    goal = Goal(loss=DppoTopk(), terms=TermsConfig())
    first = opened(model).step(batches, goal)
    assert first.gradient_norm > 0
    assert first.seen.figures()["masked_positive"] == 0.0  # nothing has moved yet
    moved = replace(PolicyConfig(path=str(model)), dtype="float32")
    backend = FsdpBackend(moved, OptimizerConfig(learning_rate=0.05))
    for _ in range(4):
        told = backend.step(batches, goal)
    assert told.seen.figures()["masked_positive"] > 0.0


def test_deterministic_is_set_and_set_back() -> None:
    assert not torch.are_deterministic_algorithms_enabled()
    torch.distributed.destroy_process_group()
    with joined(deterministic=True) as rank:
        assert rank == 0
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )


def test_a_step_draws_by_seed_step_and_rank() -> None:
    drawn = {}
    for case in ((0, 1, 0), (0, 2, 0), (1, 1, 0), (0, 1, 1), (0, 1, 0)):
        seed_step(*case)
        number = float(torch.rand(()))
        assert drawn.setdefault(case, number) == number
    assert len(set(drawn.values())) == 4


def test_one_rank_speaks_for_itself() -> None:
    assert any_rank(True)
    assert not any_rank(False)
