# SPDX-License-Identifier: Apache-2.0
"""Every value of a recipe says where it is from, and what is our choice says why."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltrain.recipes import RECIPES, recipe_file
from rltrain.refused import Refused

GIVEN = re.compile(r"^(?P<key>\w+) = .*?(?: # (?P<sources>.+))?$")
SOURCE = re.compile(r"(?P<names>\w+(?:, \w+)*)(?:: (?P<said>.+))?")
LEGEND = re.compile(r"^#   (\w+) +\S")


def given(name: str) -> list[tuple[str, str]]:
    """(key, comment) of every value in a recipe."""
    lines = recipe_file(name).read_text("utf-8").splitlines()
    found = [match for line in lines if (match := GIVEN.match(line))]
    return [(match["key"], match["sources"] or "") for match in found]


def values(table: dict[str, Any]) -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from values(value)
        else:
            yield name


def sources(comment: str) -> Iterator[tuple[str, str]]:
    """(source, what it says); ``text, ablation: X`` says the same of both."""
    for part in comment.split("; "):
        match = SOURCE.fullmatch(part)
        names = match["names"].split(", ") if match else []
        for each in names:
            yield each, (match and match["said"]) or ""


@pytest.mark.parametrize("name", RECIPES)
def test_no_value_is_overlooked(name: str) -> None:
    table = tomllib.loads(recipe_file(name).read_text("utf-8"))
    assert [key for key, _ in given(name)] == list(values(table))


@pytest.mark.parametrize("name", RECIPES)
def test_every_value_has_a_source_that_the_file_explains(name: str) -> None:
    lines = recipe_file(name).read_text("utf-8").splitlines()
    explained = {match[1] for line in lines if (match := LEGEND.match(line))}
    assert "ours" in explained
    for key, comment in given(name):
        named = [source for source, _ in sources(comment)]
        assert named, f"{key}: {comment!r}"
        assert named[0] in explained, f"{key}: {comment!r}"


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_ours_has_a_reason(name: str) -> None:
    ours = [(key, said) for key, all_ in given(name) for s, said in sources(all_) if s == "ours"]
    assert [key for key, said in ours if not said] == []


def test_sources_that_disagree_are_both_named() -> None:
    comment = dict(given("qwen36-35b"))["inference_nodes"]
    said = dict(sources(comment))
    assert said["script"].startswith("10 ")
    assert said["text"].startswith("12")


def test_every_file_is_listed_and_every_name_is_a_file() -> None:
    files = {path.stem for path in recipe_file(RECIPES[0]).parent.glob("*.toml")}
    assert files == set(RECIPES)
    assert all(isinstance(recipe_file(name), Path) for name in RECIPES)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("qwen36-36b", "recipe qwen36-36b: there is none of that name; did you mean qwen36-35b?"),
        ("../x", "there are tiny-cpu, overfit, qwen36-35b, qwen35-397b"),
    ],
)
def test_a_name_that_is_none_is_refused(name: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        recipe_file(name)
    assert said in str(refused.value)
