# SPDX-License-Identifier: Apache-2.0
"""Every trial that ended has a trajectory, and none a reward that its record does not back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envkit.fault import Fault, Owner, Phase, Policy
from envkit.trajectory.invariants import check
from envkit.trajectory.types import Identity, Limits, Stop
from envkit.trial.joined import UNNAMED, join, note_of, nothing_seen
from envkit.trial.record import Attempt, TrialRecord

from ..trajectory.rows import trajectory

HARNESS = Identity(trajectory_id="", group_id="", sample=0, task="", template_family="qwen3")
OUT_OF_MEMORY = Fault(
    code="OutOfMemory",
    owner=Owner.MODEL,
    phase=Phase.ACT,
    policy=Policy(retry=False, grade=True, reward_valid=True),
    message="killed",
)
ENGINE = Fault(
    code="EngineError",
    owner=Owner.ENGINE,
    phase=Phase.ACT,
    policy=Policy(retry=True, grade=True, reward_valid=False),
    message="gone",
)


def record(**changes: Any) -> TrialRecord:
    last = Attempt(
        number=2,
        started_at=1e9,
        phases={"act": 3.0, "grade": 1.0},
        reward=1.0,
        rewards={"reward": 1.0, "style": 0.5},
        reward_valid=True,
    )
    first = Attempt(number=1, started_at=9e8, phases={"act": 2.0}, faults=(ENGINE,))
    fields: dict[str, Any] = {
        "trial_id": "task__003",
        "task": "task",
        "sample": 3,
        "agent": "model",
        "attempts": (first, last),
        "verdict": "graded",
        "reward": 1.0,
        "reward_valid": True,
        "fault": None,
        "trial_dir": Path("trials/task__003"),
        "seconds": 7.0,
    }
    return TrialRecord(**{**fields, **changes})


def test_a_trial_and_its_episode_are_one_row() -> None:
    row = join(record(), HARNESS, trajectory().episode)
    check(row)
    identity, outcome = row.identity, row.outcome
    assert (identity.trajectory_id, identity.group_id, identity.sample) == ("task__003", "task", 3)
    assert identity.template_family == "qwen3"
    assert (outcome.reward, outcome.reward_valid, outcome.loss_live) == (1.0, True, True)
    assert outcome.rewards == {"reward": 1.0, "style": 0.5}
    assert outcome.phases == {"act": 3.0, "grade": 1.0}
    assert [each.fault for each in outcome.attempts] == [note_of(ENGINE), None]


def test_what_the_model_caused_leaves_its_reward_valid() -> None:
    row = join(record(fault=OUT_OF_MEMORY), HARNESS, trajectory().episode)
    check(row)
    assert row.outcome.loss_live


def test_a_fault_of_somebody_else_takes_the_reward_out_of_training() -> None:
    row = join(record(fault=ENGINE, reward_valid=False), HARNESS, trajectory().episode)
    check(row)
    assert (row.outcome.reward, row.outcome.loss_live) == (1.0, False)


def test_a_loop_that_ended_by_a_fault_no_record_names_has_no_valid_reward() -> None:
    episode = replace(trajectory().episode, stop=Stop.FAULT)
    row = join(record(), HARNESS, episode)
    check(row)
    assert (row.outcome.fault, row.outcome.reward_valid) == (UNNAMED, False)


@pytest.mark.parametrize("fault", [ENGINE, None])
def test_a_trial_whose_loop_never_began_has_a_row_without_tokens(fault: Fault | None) -> None:
    lost = record(fault=fault, reward=None, reward_valid=False, verdict="no_verdict")
    row = join(lost, HARNESS, nothing_seen(Limits()))
    check(row)
    assert len(row.episode.stream.token_ids) == 0


@pytest.mark.parametrize("fault", [None, OUT_OF_MEMORY])
def test_a_reward_without_a_sample_is_nobodys_whatever_the_record_says(
    fault: Fault | None,
) -> None:
    """As where the file of an episode was lost: there is nothing that the reward is for."""
    row = join(record(fault=fault), HARNESS, nothing_seen(Limits()))
    check(row)
    assert (row.outcome.reward, row.outcome.reward_valid, row.outcome.loss_live) == (
        1,
        False,
        False,
    )


def test_groups_can_be_named() -> None:
    assert join(record(), HARNESS, trajectory().episode, group_id="g-7").identity.group_id == "g-7"
