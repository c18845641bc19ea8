# SPDX-License-Identifier: Apache-2.0
"""Every way in which what an engine says of an update is not what was sent is named."""

from typing import Any

import pytest

from rltrain.sync.verify import differences, transformed_in

SENT = {"a.weight": "1", "b.weight": "2"}


def report(**other: Any) -> dict[str, Any]:
    """Of a rank with which nothing is wrong."""
    right = {"received": SENT, "unknown": [], "missing": [], "wrong": [], "transformed": []}
    return {**right, **other}


def test_an_engine_that_holds_all_of_it_has_no_differences() -> None:
    assert list(differences(SENT, [report(), report()], ())) == []


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (report(received={"a.weight": "1"}), "b.weight did not arrive"),
        (report(received={**SENT, "b.weight": "3"}), "b.weight arrived with other values"),
        (report(received={**SENT, "c.weight": "3"}), "c.weight arrived, and was not sent"),
        (report(unknown=["b.weight"]), "b.weight: the engine has no use for it"),
        (report(missing=["ab.weight"]), "ab.weight was sent nothing, or not all"),
        (report(wrong=[["b.weight", "ab.weight"]]), "ab.weight does not hold the values of b"),
        (report(transformed=[["b.weight", "ab"]]), "ab keeps b.weight in a form"),
    ],
)
def test_a_difference_names_its_tensor(spoiled: dict[str, Any], said: str) -> None:
    (line,) = differences(SENT, [spoiled], ())
    assert said in line


def test_a_tensor_that_one_rank_of_two_has_a_use_for_is_known() -> None:
    reports = [report(unknown=["a.weight"]), report(unknown=["b.weight"])]
    assert list(differences(SENT, reports, ())) == []


def test_a_rank_is_not_excused_by_another() -> None:
    (line,) = differences(SENT, [report(), report(missing=["b"])], ())
    assert line.startswith("rank 1: its b ")


@pytest.mark.parametrize(("allowed", "count"), [((".weight",), 0), (("a.weight",), 1), ((), 1)])
def test_only_what_is_named_may_be_kept_in_another_form(
    allowed: tuple[str, ...], count: int
) -> None:
    kept = report(transformed=[["b.weight", "ab"]])
    assert len(list(differences(SENT, [kept], allowed))) == count
    assert transformed_in([kept, kept]) == 1
