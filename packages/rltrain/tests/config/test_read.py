# SPDX-License-Identifier: Apache-2.0
"""Settings are read as they are meant, or refused in one line that says where and what."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltrain.config.read import by_name, made, never, read, with_settings
from rltrain.config.show import shown
from rltrain.refused import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    side: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    radius: float = 1.0
    filled: bool = False

    def __post_init__(self) -> None:
        if self.radius <= 0:
            raise ValueError(f"radius: {self.radius:g} is not above 0")


SHAPES = {"square": Square, "circle": Circle}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    count: int = 3
    kind: Literal["fast", "slow"] = "fast"
    pair: tuple[float, float] = (0.9, 0.98)
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    title: str = "none"
    inner: Inner = field(default_factory=Inner)
    shape: Square | Circle = field(default_factory=Square, metadata=by_name(SHAPES))


TEXT = """
title = "run"
[inner]
count = 5
pair = [0.5, 1]
[shape]
name = "circle"
radius = 2
"""


def test_a_file_is_read_with_settings_over_it(tmp_path: Path) -> None:
    file = tmp_path / "fit.toml"
    file.write_text(TEXT, "utf-8")
    whole = read(Whole, file, ["inner.count=7", "shape.filled=true", "title=a b"])
    assert whole == Whole(
        title="a b", inner=Inner(count=7, pair=(0.5, 1.0)), shape=Circle(radius=2.0, filled=True)
    )


def test_nothing_is_all_defaults() -> None:
    assert read(Whole, None) == Whole()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["inner.cout=1"], "inner.cout: there is no such setting; did you mean count?"),
        (["zzz=1"], "zzz: there is no such setting; there are title, inner, shape"),
        (["inner.count=many"], "inner.count: 'many': input should be a valid integer"),
        (["inner.kind=fats"], "inner.kind: 'fats': input should be 'fast' or 'slow'"),
        (["inner=3"], "inner: 3 is a value, and a table is wanted"),
        (["shape.name=circel"], "shape.name: there is no 'circel'; did you mean circle?"),
        (["shape.side=2"], "shape: give a name, one of square, circle"),
        (["shape.name=circle", "shape.radius=-1"], "shape: radius: -1 is not above 0"),
        (["shape.name=square", "shape.radius=1"], "shape.radius: there is no such setting"),
        (["inner.pair=[1.0]"], "inner.pair: [1.0]: "),
        (["title"], "--set title: give NAME=VALUE"),
        (["=3"], "--set =3: give NAME=VALUE"),
        (["title=x", "title.y=3"], "--set title.y=3: title is a value"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(settings: list[str], said: str) -> None:
    with pytest.raises(Refused) as refused:
        read(Whole, None, settings)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"none\.toml: No such file or directory"):
        read(Whole, tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = [", "utf-8")
    with pytest.raises(Refused, match=r"bad\.toml: is no TOML: "):
        read(Whole, tmp_path / "bad.toml")


def test_a_setting_leaves_the_table_that_it_is_set_over_alone() -> None:
    table: dict[str, Any] = {"inner": {"count": 1}}
    assert with_settings(table, ["inner.count=2"]) == {"inner": {"count": 2}}
    assert table == {"inner": {"count": 1}}


@given(
    title=st.text(),
    count=st.integers(-(2**62), 2**62),
    pair=st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2),
    shape=st.sampled_from([Square(side=0.1), Circle(radius=1e-9, filled=True)]),
    note=st.none() | st.text(),
)
def test_what_is_shown_is_read_back_as_it_was(
    title: str, count: int, pair: tuple[float, float], shape: Any, note: str | None
) -> None:
    inner = Inner(count=count, pair=pair, note=note, kind="slow")
    whole = Whole(title=title, inner=inner, shape=shape)
    assert made(Whole, tomllib.loads(shown(whole))) == whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Needing:
    path: str
    inner: Inner | None = None


def test_what_has_no_default_must_be_given() -> None:
    with pytest.raises(Refused, match=r"^path: must be given; it has no default$"):
        read(Needing, None)


def test_a_table_that_may_be_absent_is_read_where_it_is_there_and_shown_again() -> None:
    assert read(Needing, None, ["path=a"]) == Needing(path="a")
    needing = read(Needing, None, ["path=a", "inner.count=4"])
    assert needing == Needing(path="a", inner=Inner(count=4))
    assert made(Needing, tomllib.loads(shown(needing))) == needing


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    inner: Inner = field(default_factory=Inner, metadata=never({"cout": "nobody counts twice"}))
    shape: Square | Circle = field(
        default_factory=Square, metadata=by_name(SHAPES) | never({"edge": "a side has two"})
    )


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("inner.cout=1", "inner.cout: nobody counts twice"),
        ('shape={name = "square", edge = 1}', "shape.edge: a side has two"),
        ("inner.edge=1", "inner.edge: there is no such setting; there are count"),
    ],
)
def test_a_name_that_must_not_be_there_is_refused_with_its_own_reason(
    setting: str, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        read(Warned, None, [setting])
    assert str(refused.value).startswith(said)


def test_another_name_begins_its_table_anew_and_the_same_name_does_not() -> None:
    table = tomllib.loads(TEXT)
    assert made(Whole, with_settings(table, ["shape.name=square"])).shape == Square()
    same = made(Whole, with_settings(table, ["shape.name=circle", "shape.filled=true"]))
    assert same.shape == Circle(radius=2.0, filled=True)
    assert table == tomllib.loads(TEXT)
