# SPDX-License-Identifier: Apache-2.0
"""The tree of errors: drawn as it is, and able to cross process boundaries."""

import json
import pickle
import re
from collections.abc import Iterator

import pytest

import envkit.fault
from envkit.deadline import DeadlineExceeded
from envkit.fault import EnvkitError, ModelFault, Phase, classify, from_record, to_record

_LINE = re.compile(r"^ *[│├└─ ]*(\w+) +(\w+) +(yes|no) +(yes|no) +(yes|no|YES)$", re.MULTILINE)


def below(cls: type[EnvkitError]) -> Iterator[type[EnvkitError]]:
    for child in cls.__subclasses__():
        if child.__module__.startswith("envkit.fault"):
            yield child
            yield from below(child)


def made(cls: type[EnvkitError]) -> EnvkitError:
    return cls("box-7: gone\nsecond line")


def test_the_drawing_shows_every_class_with_its_owner_and_policy() -> None:
    drawn = {row[0]: row[1:] for row in _LINE.findall(envkit.fault.__doc__ or "")}
    for cls in below(EnvkitError):
        if cls.__name__ == "ForeignError":
            continue
        facts = (cls.policy.retry, cls.policy.grade, cls.policy.reward_valid)
        expected = (str(cls.owner), *("yes" if fact else "no" for fact in facts))
        assert tuple(word.lower() for word in drawn.pop(cls.__name__)) == expected, cls
    assert set(drawn) <= {"EnvkitError"}


def test_all_exports_are_listed_and_there() -> None:
    public = {name for name, value in vars(envkit.fault).items() if isinstance(value, type)}
    assert public <= set(envkit.fault.__all__)
    assert all(hasattr(envkit.fault, name) for name in envkit.fault.__all__)


@pytest.mark.parametrize("cls", list(below(EnvkitError)), ids=lambda cls: cls.__name__)
def test_every_error_survives_pickling_and_json(cls: type[EnvkitError]) -> None:
    error = made(cls)
    by_pickle = pickle.loads(pickle.dumps(error))
    by_json = from_record(json.loads(json.dumps(to_record(error))))
    for copy in (by_pickle, by_json):
        assert type(copy) is cls
        assert copy.args == error.args
        assert classify(copy, Phase.ACT) == classify(error, Phase.ACT)


def test_a_deadline_survives_with_operation_and_seconds() -> None:
    error = DeadlineExceeded("mcp_call", 2.5)
    for copy in (pickle.loads(pickle.dumps(error)), from_record(to_record(error))):
        assert isinstance(copy, DeadlineExceeded)
        assert (copy.op, copy.seconds, str(copy)) == ("mcp_call", 2.5, str(error))


def test_a_foreign_error_read_back_is_classified_as_what_it_stands_for() -> None:
    error = ConnectionResetError("peer")
    copy = from_record(json.loads(json.dumps(to_record(error))))
    assert type(copy).__name__ == "ForeignError"
    assert classify(copy, Phase.COLLECT) == classify(error, Phase.COLLECT)


def test_a_model_fault_is_valid_and_never_retried() -> None:
    for cls in (ModelFault, *below(ModelFault)):
        assert cls.policy.reward_valid
        assert not cls.policy.retry


def test_a_record_is_classified_like_the_error_it_was_made_from() -> None:
    for cls in below(EnvkitError):
        record = json.loads(json.dumps(to_record(made(cls))))
        assert classify(record, Phase.ACT) == classify(made(cls), Phase.ACT)
