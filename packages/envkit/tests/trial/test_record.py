# SPDX-License-Identifier: Apache-2.0
"""A record survives its file, and says which fault stands on it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.fault import Fault, Owner, Phase, Policy
from envkit.trial.record import (
    RECORD_NAME,
    Attempt,
    Grade,
    TrialRecord,
    attempt_from_dict,
    attempt_to_dict,
    decided_by,
    write_record,
)

numbers = st.floats(0, 1e6, allow_nan=False)
words = st.text(max_size=12)
policies = st.builds(Policy, retry=st.booleans(), grade=st.booleans(), reward_valid=st.booleans())
faults = st.builds(
    Fault,
    code=words,
    owner=st.sampled_from(Owner),
    phase=st.sampled_from(Phase),
    policy=policies,
    message=words,
)
grades = st.builds(
    Grade,
    reward=st.none() | numbers,
    rewards=st.dictionaries(words, numbers, max_size=3),
    fault=st.none() | faults,
)
attempts = st.builds(
    Attempt,
    number=st.integers(1, 3),
    started_at=numbers,
    phases=st.dictionaries(words, numbers, max_size=3),
    reward=st.none() | numbers,
    rewards=st.dictionaries(words, numbers, max_size=3),
    reward_valid=st.booleans(),
    faults=st.lists(faults, max_size=3).map(tuple),
    cpu_s=st.dictionaries(words, numbers, max_size=3),
    peak_memory_mib=numbers,
    tool_calls=st.integers(0, 99),
    tools=st.lists(words, max_size=3).map(tuple),
    grades=st.lists(grades, max_size=2).map(tuple),
    searched=st.integers(0, 4),
    unsearched=st.integers(0, 4),
)


def record(**changes: Any) -> TrialRecord:
    fields: dict[str, Any] = {
        "trial_id": "task__000",
        "task": "task",
        "sample": 0,
        "agent": "replay",
        "attempts": (),
        "verdict": "graded",
        "reward": 1.0,
        "reward_valid": True,
        "fault": None,
        "trial_dir": Path("trials/task__000"),
        "seconds": 1.5,
    }
    return TrialRecord(**{**fields, **changes})


@given(attempts, st.none() | faults)
def test_a_record_survives_json(attempt: Attempt, fault: Fault | None):
    before = record(attempts=(attempt,), fault=fault)
    after = TrialRecord.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before


@given(attempts)
def test_an_attempt_survives_json(attempt: Attempt):
    assert attempt_from_dict(json.loads(json.dumps(attempt_to_dict(attempt)))) == attempt


def test_a_record_is_written_whole_or_not_at_all(tmp_path: Path):
    write_record(record(trial_dir=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [RECORD_NAME]
    assert TrialRecord.from_dict(json.loads((tmp_path / RECORD_NAME).read_text())).reward == 1.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": "envkit.trial/2"}, "schema is 'envkit.trial/2'"),
        ({"seconds": ...}, "'seconds' is missing"),
        ({"attempts": [{"number": 1}]}, "missing or malformed"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(change: dict[str, Any], says: str):
    data = {**record().to_dict(), **change}
    data = {name: value for name, value in data.items() if value is not ...}
    with pytest.raises(ValueError, match=says):
        TrialRecord.from_dict(data)


def fault(code: str, owner: Owner, *, valid: bool) -> Fault:
    policy = Policy(retry=False, grade=True, reward_valid=valid)
    return Fault(code=code, owner=owner, phase=Phase.ACT, policy=policy, message="")


def test_what_makes_the_reward_invalid_stands_before_what_the_model_caused():
    own = fault("OutOfMemory", Owner.MODEL, valid=True)
    lost = fault("TransferFailed", Owner.SANDBOX, valid=False)
    teardown = fault("DeadlineExceeded:stop", Owner.SANDBOX, valid=True)
    assert decided_by((own, teardown, lost)) == lost
    assert decided_by((teardown, own)) == own
    assert decided_by((teardown,)) is None
    assert decided_by(()) is None


def test_an_attempt_of_an_earlier_version_is_read_without_what_came_later():
    data = attempt_to_dict(Attempt(number=1, started_at=0.0))
    for later in ("tools", "grades", "searched", "unsearched", "cpu_by_phase"):
        del data[later]
    assert attempt_from_dict(data) == Attempt(number=1, started_at=0.0)
