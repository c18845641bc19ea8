# SPDX-License-Identifier: Apache-2.0
"""The numbers of a step, against what comes out by hand; NaN where there is nothing to measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from envkit.trajectory.types import Stop
from rltrain.batch.sample import Sample
from rltrain.batch.stamp import Stamped, stamp
from rltrain.loop.figures import figures
from rltrain.objective.config import ObjectiveConfig
from rltrain.objective.report import Seen
from rltrain.policy.types import Stepped

pytestmark = pytest.mark.trainer


def sample(name: str, trained: int, length: int, reward: float | None, **changes: Any) -> Sample:
    """The model's own tokens stand at its end."""
    mask = np.arange(length) >= length - trained
    versions = changes.pop("versions", [4] * trained)
    known: dict[str, Any] = {
        "valid": reward is not None,
        "live": reward is not None,
        "stop": Stop.FINAL,
        "turns": 1,
    }
    return Sample(
        trajectory_id=name,
        group_id=name.partition("__")[0],
        token_ids=np.arange(length, dtype=np.int32),
        mask=mask,
        logprobs=np.where(mask, -1.0, np.nan).astype(np.float32),
        weight_version=np.array([-1] * (length - trained) + versions, np.int32),
        temperature=1.0,
        reward=reward,
        environment_tokens=0,
        **known | changes,
    )


BATCH = (
    sample("a__0", 2, 10, 1.0, turns=2, calls=3, calls_ok=2, versions=[2, 5]),
    sample("a__1", 4, 20, 0.0, turns=1, calls=1, calls_ok=1, stop=Stop.CONTEXT),
    sample("a__2", 3, 30, None, turns=3, stop=Stop.FAULT),
    sample("b__0", 5, 40, 0.5, turns=2, stop=Stop.LENGTH),
    sample("b__1", 6, 50, 0.5, turns=2, stop=Stop.TURN_CAP),
    sample("c__0", 7, 60, 0.25, turns=4, calls=4),
    sample("d__0", 1, 70, 0.75, turns=0, versions=[-1]),
    sample("d__1", 8, 80, 1.0, turns=1, live=False),
)
"""Group a is trained on but for a fault, b has no variance, c one sample, d one that is stale."""


def told(batch: Sequence[Sample], stepped: Stepped | None = None, version: int = 6) -> Any:
    return figures(stamp(ObjectiveConfig(), batch), stepped, version)


def test_a_mean_reward_is_of_the_valid_and_its_bounds_are_of_all() -> None:
    found = told(BATCH)
    assert found["reward/mean"] == pytest.approx(4.0 / 7)
    assert found["reward/fault_share"] == 1 / 8
    assert found["reward/low"] == 4.0 / 8
    assert found["reward/high"] == 5.0 / 8
    assert found["reward/count"] == 8


def test_groups_are_counted_by_what_became_of_them() -> None:
    found = told(BATCH)
    assert (found["groups/trained"], found["samples/trained"]) == (2, 3)
    assert (found["groups/few_valid"], found["groups/no_variance"]) == (1, 1)
    assert found["tokens/trained"] == 2 + 4 + 1
    assert found["tokens/all"] == sum(range(10, 90, 10))


def test_lengths_are_of_all_samples() -> None:
    found = told(BATCH)
    assert (found["length/p50"], found["length/max"]) == (45.0, 80)
    assert found["length/p90"] == pytest.approx(73.0)
    assert found["length/model_mean"] == 36 / 8


def test_behaviour_is_of_all_samples_and_shares_are_of_all_calls() -> None:
    found = told(BATCH)
    assert found["behaviour/turns"] == 15 / 8
    assert found["behaviour/tokens_per_turn"] == 36 / 15
    assert found["behaviour/calls_ok"] == 3 / 8
    assert found["behaviour/cut_off"] == 2 / 8


def test_staleness_is_of_the_oldest_that_sampled_and_of_samples_that_are_trained_on() -> None:
    found = told(BATCH)  # trained on: oldest 2, oldest 4, not known; changed is 6
    assert found["staleness/mean"] == 3.0
    assert found["staleness/max"] == 4
    assert found["staleness/unknown"] == pytest.approx(1 / 3)


def test_a_sample_of_which_some_versions_are_not_known_is_of_no_known_one() -> None:
    batch = [sample("a__0", 2, 4, 1.0, versions=[-1, 6]), sample("a__1", 2, 4, 0.0)]
    found = told(batch)
    assert (found["staleness/mean"], found["staleness/unknown"]) == (2.0, 0.5)


def test_where_no_version_is_known_there_is_no_staleness() -> None:
    batch = [sample(f"a__{n}", 2, 4, float(n), versions=[-1, -1]) for n in range(2)]
    found = told(batch)
    assert found["staleness/unknown"] == 1.0
    assert math.isnan(found["staleness/mean"])
    assert math.isnan(found["staleness/max"])


def test_where_no_reward_is_valid_there_is_no_mean_and_the_bounds_are_all_there_can_be() -> None:
    found = told([sample(f"a__{n}", 2, 4, None) for n in range(3)])
    assert math.isnan(found["reward/mean"])
    assert (found["reward/fault_share"], found["reward/low"], found["reward/high"]) == (1, 0, 1)
    assert (found["groups/trained"], found["tokens/trained"]) == (0, 0)
    assert math.isnan(found["staleness/unknown"])


def test_a_reward_that_is_not_valid_is_in_no_mean() -> None:
    batch = [sample("a__0", 2, 4, 1.0, valid=False, live=False), sample("a__1", 2, 4, 0.5)]
    found = told(batch)
    assert (found["reward/mean"], found["reward/fault_share"]) == (0.5, 0.5)
    assert (found["reward/low"], found["reward/high"]) == (0.25, 0.75)


def test_rewards_that_are_all_valid_are_their_own_bounds() -> None:
    found = told([sample("a__0", 2, 4, -2.0), sample("a__1", 2, 4, 0.5)])
    assert found["reward/low"] == found["reward/mean"] == found["reward/high"] == -0.75
    assert found["reward/fault_share"] == 0


@pytest.mark.parametrize("turns", [0, 3])
def test_without_calls_there_is_no_share_and_without_turns_no_tokens_of_one(turns: int) -> None:
    found = told([sample("a__0", 6, 9, 1.0, turns=turns), sample("a__1", 3, 9, 0.0, turns=turns)])
    assert math.isnan(found["behaviour/calls_ok"])
    assert found["behaviour/turns"] == turns
    if turns:
        assert found["behaviour/tokens_per_turn"] == 1.5
    else:
        assert math.isnan(found["behaviour/tokens_per_turn"])


def test_of_no_samples_there_is_nothing_to_measure() -> None:
    nothing = torch.empty(0, dtype=torch.float64)
    empty = Stamped(samples=(), advantage=nothing, weight=nothing, dropped={})
    found = figures(empty, None, 0)
    counted = {name for name, value in found.items() if not math.isnan(value)}
    assert counted == {
        "reward/count",
        "groups/trained",
        "groups/few_valid",
        "groups/no_variance",
        "samples/trained",
        "tokens/trained",
        "tokens/all",
        "length/max",
    }
    assert {found[name] for name in counted} == {0}


def stepped(versions: Sequence[int], swaps: Sequence[int] = (0, 0, 0, 0)) -> Stepped:
    """Of four tokens."""
    return Stepped(
        loss=-0.5,
        gradient_norm=2.0,
        learning_rate=1e-3,
        seen=Seen(
            positive=torch.tensor([1, 1, -1, -1], dtype=torch.int8),
            masked=torch.tensor([True, False, False, False]),
            difference=torch.tensor([0.0, -0.25, 0.5, 0.125]),
            variation=torch.tensor([0.0, 0.25, 0.5, 0.25]),
            entropy=torch.tensor([1.0, 2.0, 3.0, 4.0]),
            version=torch.tensor(versions, dtype=torch.int32),
            swaps=torch.tensor(swaps),
        ),
    )


def test_a_step_tells_what_it_did() -> None:
    found = told(BATCH, stepped([6, 6, 6, 6]))
    assert found["loss/value"] == -0.5
    assert (found["loss/masked_positive"], found["loss/masked_negative"]) == (0.5, 0.0)
    assert (found["loss/tv"], found["loss/entropy"]) == (0.25, 2.5)
    assert (found["optimizer/gradient_norm"], found["optimizer/learning_rate"]) == (2.0, 1e-3)
    assert found["logprob/difference"] == 0.875 / 4
    assert (found["logprob/max"], found["logprob/tokens"]) == (0.5, 4)


def test_the_difference_of_logprobs_is_of_tokens_of_the_very_weights_that_are_changed() -> None:
    found = told(BATCH, stepped([5, 6, -1, 6]))
    assert found["logprob/difference"] == 0.375 / 2
    assert (found["logprob/max"], found["logprob/tokens"]) == (0.25, 2)
    assert found["loss/tv"] == 0.25  # of all of them


@pytest.mark.parametrize("versions", [[5, 5, 4, 4], [-1, -1, -1, -1]])
def test_where_other_weights_sampled_there_is_no_difference_to_tell(versions: list[int]) -> None:
    found = told(BATCH, stepped(versions))
    for name in ("difference", "p99", "max", "tokens"):
        assert math.isnan(found[f"logprob/{name}"])


def test_where_no_step_was_taken_there_is_nothing_of_one() -> None:
    parts = {name.partition("/")[0] for name in told(BATCH)}
    assert parts.isdisjoint({"loss", "logprob", "optimizer"})


def test_what_was_sampled_after_a_swap_or_by_older_weights_is_told_by_itself() -> None:
    found = told(BATCH, stepped([6, 6, 5, 2], swaps=[0, 1, 1, 0]))
    assert (found["logprob/difference"], found["logprob/tokens"]) == (0.0, 1)
    assert (found["logprob/swapped"], found["logprob/swapped_tokens"]) == (0.25, 1)
    assert (found["logprob/age_1"], found["logprob/age_3"]) == (0.5, 0.125)
    assert math.isnan(found["logprob/age_2"])
