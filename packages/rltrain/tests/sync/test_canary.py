# SPDX-License-Identifier: Apache-2.0
"""The scores of engines against the trainer's: what is compared, and what is said of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from envkit.trajectory.types import Stop
from rltrain.batch.sample import Sample
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import joined
from rltrain.sync.canary import Canary, Checked
from rltrain.sync.config import CanaryConfig
from rltrain.sync.errors import CanaryAlarm, ReplicasLost
from rltrain.sync.probes import recent_probes
from rltrain.sync.types import Replica
from rltrain.sync.version import WeightVersion

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "policy/fsdp"))
import small
from loopback import Engine, serving

pytestmark = pytest.mark.trainer

VOCABULARY, CONTEXT = 97, 64
VERSION = WeightVersion(lineage=2, step=3)
CONFIG = CanaryConfig(sequences=3, tokens=20, recent=4, score_s=5.0)

type Scores = Callable[[list[int]], list[float]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.qwen3(tmp_path_factory.mktemp("model"), VOCABULARY)


@pytest.fixture(scope="module")
def right(model: Path) -> Scores:
    """By transformers alone."""
    scorer: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)

    def logprobs(ids: list[int]) -> list[float]:
        with torch.no_grad():
            chances = scorer(torch.tensor([ids])).logits[0].log_softmax(-1)
        return chances[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].tolist()

    return logprobs


@pytest.fixture
def backend(model: Path) -> Iterator[FsdpBackend]:
    with joined():
        yield FsdpBackend(PolicyConfig(path=str(model), dtype="float32"), OptimizerConfig())


def sample(name: str, length: int, sampled: int) -> Sample:
    drawn = np.random.default_rng(length)
    mask = np.arange(length) >= length - sampled
    return Sample(
        trajectory_id=name,
        group_id="g",
        token_ids=drawn.integers(0, VOCABULARY, length).astype(np.int32),
        mask=mask,
        logprobs=np.where(mask, -1.0, np.nan).astype(np.float32),
        weight_version=np.where(mask, 0, -1).astype(np.int32),
        temperature=0.7,
        reward=None,
        valid=False,
        live=False,
        stop=Stop.FINAL,
        environment_tokens=0,
    )


def check(backend: FsdpBackend, *engines: Engine, recent: tuple[Sample, ...] = ()) -> Checked:
    canary = Canary(CONFIG, vocabulary=VOCABULARY, context_tokens=CONTEXT, dtype="float32", cap=50)
    with serving(*engines):
        replicas = [Replica(name=f"e{n}", url=each.url) for n, each in enumerate(engines)]
        checked = canary.check(backend, replicas, VERSION, recent)
    assert checked is not None
    return checked


def engine(logprobs: Scores, **more: Any) -> Engine:
    return Engine(**{"version": str(VERSION.number), "logprobs": logprobs, **more})


def test_an_engine_that_scores_as_the_trainer_does_is_quiet(
    backend: FsdpBackend, right: Scores
) -> None:
    recent = tuple(sample(f"t{n}", 20 + n, 7) for n in range(3))
    checked = check(backend, engine(right), recent=recent)
    checked.expect_quiet()
    (compared,) = checked.replicas
    assert compared.recent is not None
    assert (compared.fixed.tokens, compared.fixed.trajectories) == (3 * 19, 3)
    assert (compared.recent.tokens, compared.recent.trajectories) == (21, 3)
    assert compared.recent.mean <= compared.recent.most < 1e-5


def test_without_trajectories_their_difference_is_absent_and_not_zero(
    backend: FsdpBackend, right: Scores
) -> None:
    assert check(backend, engine(right)).replicas[0].recent is None


@pytest.mark.parametrize("off", [0.01, -0.01, math.nan, math.inf])
def test_the_one_engine_of_two_that_scores_otherwise_is_named(
    backend: FsdpBackend, right: Scores, off: float
) -> None:
    shifted = engine(lambda ids: [each + off for each in right(ids)])
    checked = check(backend, engine(right), shifted)
    assert len(checked.alarms) == 1
    with pytest.raises(CanaryAlarm, match="weights 2/3: replica e1: mean"):
        checked.expect_quiet()


def test_only_tokens_that_the_model_sampled_are_compared_in_a_trajectory(
    backend: FsdpBackend, right: Scores
) -> None:
    recent = sample("t", 30, 5)
    prompt = recent.token_ids.tolist()

    def wrong_in_prompt(ids: list[int]) -> list[float]:
        logprobs = right(ids)
        return [0.0] * 24 + logprobs[24:] if ids == prompt else logprobs

    check(backend, engine(wrong_in_prompt), recent=(recent,)).expect_quiet()


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        ({"version": "5"}, "and not version 2000003"),
        ({"faults": {"/v1/completions": "fail"}}, "status 500: it broke inside"),
        ({"faults": {"/v1/models": "close"}}, "RemoteDisconnected"),
    ],
)
def test_an_engine_that_does_not_answer_is_lost_and_not_wrong(
    backend: FsdpBackend, right: Scores, spoiled: dict[str, Any], said: str
) -> None:
    checked = check(backend, engine(right), engine(right, **spoiled))
    assert checked.alarms == ()
    assert [each.replica for each in checked.replicas] == ["e0"]
    with pytest.raises(ReplicasLost, match=f"e1 is lost: .*{said}"):
        checked.expect_quiet()


def test_fewer_scores_than_tokens_are_no_scores(backend: FsdpBackend, right: Scores) -> None:
    class Short(Engine):
        def _scored(self, index: int, ids: list[int]) -> dict[str, Any]:
            told = super()._scored(index, ids)
            return {**told, "prompt_logprobs": told["prompt_logprobs"][:-1]}

    checked = check(backend, Short(version=str(VERSION.number), logprobs=right))
    assert "canary: the answer cannot be read" in checked.silent[0].failure


@pytest.mark.parametrize("told", [{}, {"choices": [{"index": 0}]}, {"choices": []}, None])
def test_an_answer_that_is_not_the_protocol_is_named(
    backend: FsdpBackend, right: Scores, told: Any
) -> None:
    class Odd(Engine):
        def answer(self, path: str, body: Any) -> Any:
            return told if path == "/v1/completions" else super().answer(path, body)

    checked = check(backend, Odd(version=str(VERSION.number), logprobs=right))
    assert "canary: the answer cannot be read" in checked.silent[0].failure


def test_probes_are_the_newest_trajectories_that_an_engine_has_room_for() -> None:
    long = sample("long", CONTEXT + 10, 30)
    prompt_only = sample("no room", CONTEXT + 30, 4)
    rows = [sample(f"t{n}", 20, 5) for n in range(5)]
    probes = recent_probes([*rows, long, prompt_only], 3, CONTEXT)
    assert [each.trajectory_id for each in probes] == ["t3", "t4", "long"]
    assert [len(each) for each in probes] == [20, 20, CONTEXT - 1]
    assert {each.temperature for each in probes} == {1.0}
    assert replace(probes[-1]).trained == 19
