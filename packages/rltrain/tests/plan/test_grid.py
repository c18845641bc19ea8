# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from rltrain.cluster.config import HERE, ClusterConfig, MegatronConfig
from rltrain.plan.grid import Split, own, splits
from rltrain.refused import Refused

LARGE = ClusterConfig(
    backend="megatron",
    inference_nodes=12,
    training_nodes=8,
    engines=12,
    engine_tp=8,
    megatron=MegatronConfig(tp=4, ep=16, pp=4, cp=2),
)
SMALL = ClusterConfig(inference_nodes=3, training_nodes=2, engines=6, engine_tp=4)


def names(found: tuple[Split, ...]) -> list[str]:
    return [each.name for each in found]


def test_the_recipe_s_own_is_first_and_there_once() -> None:
    found = splits(own(SMALL, 100, 3), None)
    assert found[0].own
    assert found[0].cluster == SMALL
    assert names(found).count("3 : 2") == 1
    assert len(set(names(found))) == len(found)
    assert not any(each.own for each in found[1:])


def test_the_same_nodes_are_split_otherwise_with_engines_of_the_same_size() -> None:
    found = {each.name: each for each in splits(own(SMALL, 100, 3), None)}
    assert {"2 : 3", "4 : 1", "1 : 4"} <= set(found)
    assert found["2 : 3"].cluster.engines == 4
    assert {each.cluster.engine_tp for each in found.values()} == {4}


def test_a_split_whose_trainers_hold_no_whole_copies_is_left_out() -> None:
    """Experts over 16 x 4 GPUs: training nodes come in eights."""
    found = splits(own(LARGE, 300, 3), None)
    assert {each.cluster.training_nodes for each in found} == {8}
    assert "18 : 8" in names(found)


def test_a_wider_bound_stands_beside_the_recipe_s() -> None:
    (wider,) = [each for each in splits(own(SMALL, 100, 3), None) if each.staleness != 3]
    assert (wider.name, wider.staleness, wider.cluster) == ("3 : 2, S = 7", 7, SMALL)


def test_those_that_are_asked_for_are_compared_and_no_others() -> None:
    assert names(splits(own(SMALL, 100, 3), "1:2,6:2")) == ["3 : 2", "1 : 2", "6 : 2"]


def test_one_machine_is_compared_by_trials_at_once() -> None:
    found = splits(own(HERE, 16, 3), None)
    assert names(found) == ["16 at once", "8 at once", "32 at once", "16 at once, S = 7"]
    assert names(splits(own(HERE, 16, 3), "4,16")) == ["16 at once", "4 at once"]


@pytest.mark.parametrize(
    ("cluster", "asked", "said"),
    [
        (SMALL, "4", "--grid 4: give nodes as INFERENCE:TRAINING"),
        (SMALL, "a:2", "give nodes as INFERENCE:TRAINING"),
        (SMALL, "0:2", "an engine of 4 GPUs needs more than 0 nodes"),
        (LARGE, "12:4", "does not divide the 32 training GPUs"),
        (HERE, "4:2", "on CPUs give numbers of trials at once"),
        (HERE, "0", "at least 1 trial at once"),
    ],
)
def test_what_cannot_be_is_refused(cluster: ClusterConfig, asked: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        splits(own(cluster, 16, 3), asked)
    assert said in str(refused.value)
