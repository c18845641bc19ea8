# SPDX-License-Identifier: Apache-2.0
"""Versions across resumptions: what a dead lineage sampled counts as its last living ancestor."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltrain.loop.lineage import LINEAGES, Lineages
from rltrain.refused import Refused
from rltrain.sync.version import WeightVersion

AT = "2026-01-01T00:00:00+00:00"


def begun(root: Path, *parents: tuple[int, int]) -> Lineages:
    """A first lineage, and one more from each parent."""
    found = Lineages.read(root).begun(root, None, AT)
    for lineage, step in parents:
        found = found.begun(root, WeightVersion(lineage=lineage, step=step), AT)
    return found


def number(lineage: int, step: int) -> int:
    return WeightVersion(lineage=lineage, step=step).number


def test_a_first_lineage_counts_its_own_steps(tmp_path: Path) -> None:
    found = begun(tmp_path)
    assert found.version(7).number == 7
    assert found.step_of(7) == 7
    assert found.is_ancestor(7)


@pytest.mark.parametrize(
    ("parents", "version", "step"),
    [
        (((0, 10),), (0, 4), 4),
        (((0, 10),), (0, 10), 10),
        (((0, 10),), (0, 13), 10),
        (((0, 10),), (1, 12), 12),
        (((0, 10), (1, 15)), (0, 13), 10),
        (((0, 10), (1, 15)), (1, 18), 15),
        (((0, 10), (0, 5)), (0, 9), 5),
        (((0, 10), (0, 5)), (1, 12), 5),
        (((0, 10), (1, 20), (0, 5)), (2, 25), 5),
        (((0, 0),), (0, 3), 0),
    ],
)
def test_a_version_counts_as_the_newest_of_its_weights_that_survive(
    tmp_path: Path, parents: tuple[tuple[int, int], ...], version: tuple[int, int], step: int
) -> None:
    assert begun(tmp_path, *parents).step_of(number(*version)) == step


def test_only_weights_that_were_gone_on_from_are_ancestors(tmp_path: Path) -> None:
    found = begun(tmp_path, (0, 10), (0, 5))
    assert [found.is_ancestor(number(*each)) for each in ((0, 5), (0, 6), (1, 3), (2, 9))] == [
        True,
        False,
        False,
        True,
    ]


def test_a_version_that_is_not_known_counts_as_none(tmp_path: Path) -> None:
    found = begun(tmp_path)
    assert (found.step_of(-1), found.is_ancestor(-1)) == (-1, False)


def test_lineages_are_read_as_they_were_begun(tmp_path: Path) -> None:
    assert Lineages.read(tmp_path).lines == ()
    assert begun(tmp_path, (0, 3)) == Lineages.read(tmp_path)


def test_a_file_that_holds_no_lineages_is_named(tmp_path: Path) -> None:
    (tmp_path / LINEAGES).write_text("[{")
    with pytest.raises(Refused, match=r"lineages\.json: has no lineages in it"):
        Lineages.read(tmp_path)


@given(st.data())
def test_no_version_counts_as_newer_than_any_weights_it_shares(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("run")
    found = Lineages.read(root).begun(root, None, AT)
    for _ in range(data.draw(st.integers(0, 4))):
        lineage = data.draw(st.integers(0, found.now))
        parent = WeightVersion(lineage=lineage, step=data.draw(st.integers(0, 9)))
        found = found.begun(root, parent, AT)
    lineage, step = data.draw(st.integers(0, found.now)), data.draw(st.integers(0, 9))
    counted = found.step_of(number(lineage, step))
    assert found.is_ancestor(number(lineage, step)) <= (counted == step)
    assert lineage != found.now or counted == step
    assert counted <= 9
