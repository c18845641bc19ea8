# SPDX-License-Identifier: Apache-2.0
"""Micro-batches carry the numbers of the whole batch, and each trained token once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from envkit.trajectory.types import Stop
from rltrain.batch.cost import Cost
from rltrain.batch.micro import MicroBatch, MixedTemperatures, cut, joined
from rltrain.batch.pack import TooLong
from rltrain.batch.sample import Sample
from rltrain.batch.stamp import stamp
from rltrain.objective.config import ObjectiveConfig

from .made import sample

pytestmark = pytest.mark.trainer

COST = Cost(a=10.0, b=1.0)


def batch() -> list[Sample]:
    """Four prompts; one teaches nothing, one has a sample without a valid reward."""
    made: list[Sample] = []
    for group in range(4):
        for number in range(5):
            valid = (group, number) != (1, 2)
            made.append(
                sample(
                    f"g{group}__{number}",
                    length=6 + 3 * number + group,
                    seed=10 * group + number,
                    reward=(1.0 if group == 3 else float(number % 2)) if valid else None,
                    valid=valid,
                    live=valid,
                )
            )
    return made


def seen(micro: list[list[MicroBatch]]) -> dict[tuple[int, int], tuple[float, float, float, int]]:
    """By sample and place in it: weight, advantage, rollout, target; weightless ones left out."""
    found: dict[tuple[int, int], tuple[float, float, float, int]] = {}
    for each in (each for rank in micro for each in rank):
        starts = np.cumsum([0, *each.lengths])
        for n in range(len(each.targets)):
            if each.weight[n] == 0:
                continue
            local = int(each.sample[n])
            key = (each.which[local], int(each.states[n]) + 1 - int(starts[local]))
            assert key not in found
            numbers = (each.weight[n], each.advantage[n], each.rollout[n])
            found[key] = (*map(float, numbers), int(each.targets[n]))
    return found


@pytest.mark.parametrize(("ranks", "cap"), [(1, 30), (1, 1000), (2, 40), (4, 60), (3, 25)])
def test_every_trained_token_is_there_once_with_its_numbers(ranks: int, cap: int) -> None:
    samples = batch()
    stamped = stamp(ObjectiveConfig(), samples)
    micro = cut(stamped, COST, cap=cap, ranks=ranks)
    assert len({len(rank) for rank in micro}) == 1
    expected = {
        (n, place): (
            float(stamped.weight[n]),
            float(stamped.advantage[n]),
            float(samples[n].logprobs[place]),
            int(samples[n].token_ids[place]),
        )
        for n in stamped.trained
        for place in np.flatnonzero(samples[n].mask)
    }
    assert seen(micro) == expected
    assert stamped.dropped == {"g3": "no_variance"}
    total = sum(float(each.weight.sum()) for rank in micro for each in rank)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_positions_begin_anew_with_each_sample() -> None:
    (rank,) = cut(stamp(ObjectiveConfig(), batch()), COST, cap=1000, ranks=1)
    (micro,) = rank
    assert micro.positions.tolist() == [n for each in micro.lengths for n in range(each)]
    assert len(micro.ids) == sum(micro.lengths)
    assert torch.equal(micro.ids[micro.states + 1], micro.targets)


def test_a_token_knows_how_often_weights_had_changed_in_its_own_sample() -> None:
    mask = np.array([False, True, True, False, True, True, True])
    versions = ([-1, 4, 4, -1, 5, 5, 7], [-1, 3, 3, -1, 3, 3, 3])
    rows = [
        sample(length=7, mask=mask, weight_version=np.array(each, np.int32)) for each in versions
    ]
    micro = joined(rows, (0, 1))
    assert micro.swaps.tolist() == [0, 0, 1, 1, 2, 0, 0, 0, 0, 0]


def test_a_token_that_attends_to_keys_of_older_weights_is_after_a_swap() -> None:
    """A request may wait while the weights change, and then all of it is of the new ones."""
    mask = np.array([False, True, True, True, True])
    version, oldest = np.array([-1, 6, 6, 7, 7]), np.array([-1, 5, 5, 5, -1])
    row = sample(length=5, mask=mask, weight_version=version, kv_version=oldest)
    assert joined([row], (0,)).swaps.tolist() == [1, 1, 2, 1]


def test_ranks_without_a_sample_get_one_without_weight() -> None:
    samples = [sample("a__0", seed=1, reward=0.0), sample("a__1", seed=2, reward=1.0)]
    micro = cut(stamp(ObjectiveConfig(), samples), COST, cap=100, ranks=4)
    assert [len(rank) for rank in micro] == [1] * 4
    weights = sorted(float(each.weight.sum()) for rank in micro for each in rank)
    assert weights[:2] == [0.0, 0.0]
    assert sum(weights) == pytest.approx(1.0)


def test_a_batch_that_teaches_nothing_is_no_micro_batch() -> None:
    samples = [sample("a__0"), sample("a__1")]
    stamped = stamp(ObjectiveConfig(), samples)
    assert stamped.dropped == {"a": "no_variance"}
    assert cut(stamped, COST, cap=100, ranks=2) == [[], []]


def test_what_was_cut_off_counts_for_others_and_is_not_trained_on() -> None:
    samples = [sample(f"a__{n}", seed=n, reward=float(n)) for n in range(3)]
    samples[2] = replace(samples[2], stop=Stop.CONTEXT)
    plain = stamp(ObjectiveConfig(), samples)
    filtered = stamp(ObjectiveConfig(overlong_filter=True), samples)
    assert torch.equal(plain.advantage, filtered.advantage)
    assert (plain.trained, filtered.trained) == ([0, 1, 2], [0, 1])


def test_samples_that_do_not_go_together_are_refused() -> None:
    samples = [sample("a__0", reward=0.0), sample("a__1", reward=1.0, temperature=0.5)]
    stamped = stamp(ObjectiveConfig(), samples)
    with pytest.raises(MixedTemperatures, match=r"temperatures 0\.5, 1 cannot be scored together"):
        cut(stamped, COST, cap=100, ranks=1)
    with pytest.raises(TooLong, match="a__0 has 12 tokens, a micro-batch 11"):
        cut(stamped, COST, cap=11, ranks=1)


def test_alternatives_are_those_of_the_trained_tokens() -> None:
    samples = [
        sample(f"a__{n}", seed=n, reward=float(n), topk_ids=np.full((12, 2), n, np.int32))
        for n in range(2)
    ]
    samples = [replace(each, topk_logprobs=np.zeros((12, 2), np.float32)) for each in samples]
    ((micro,),) = cut(stamp(ObjectiveConfig(), samples), COST, cap=100, ranks=1)
    assert micro.topk_ids is not None
    assert micro.topk_ids[:, 0].tolist() == [micro.which[int(each)] for each in micro.sample]
    without = [samples[0], replace(samples[1], topk_ids=None)]
    ((micro,),) = cut(stamp(ObjectiveConfig(), without), COST, cap=100, ranks=1)
    assert micro.topk_ids is None
