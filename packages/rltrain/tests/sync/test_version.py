# SPDX-License-Identifier: Apache-2.0
"""A version of weights as a number that tokens are recorded with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltrain.sync.version import LINEAGES, STEPS, WeightVersion


@given(st.integers(0, LINEAGES - 1), st.integers(0, STEPS - 1))
def test_a_number_tells_its_version(lineage: int, step: int) -> None:
    version = WeightVersion(lineage=lineage, step=step)
    assert WeightVersion.of(version.number) == version
    assert 0 <= version.number < 2**31


def test_a_later_lineage_is_newer_than_any_step_of_an_earlier() -> None:
    assert WeightVersion(lineage=1, step=0) > WeightVersion(lineage=0, step=STEPS - 1)
    assert WeightVersion(lineage=1, step=0).number > WeightVersion(lineage=0, step=9).number


@pytest.mark.parametrize(("lineage", "step"), [(0, STEPS), (0, -1), (LINEAGES, 0), (-1, 0)])
def test_what_no_number_can_tell_is_no_version(lineage: int, step: int) -> None:
    with pytest.raises(ValueError, match="lineages"):
        WeightVersion(lineage=lineage, step=step)
