# SPDX-License-Identifier: Apache-2.0
"""The highest concurrency that fits, and what binds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.preflight.fit import DEFAULT_COSTS, Cost, Costs, crowding, fit
from envkit.preflight.host import Supply

RESOURCES = ("memory", "open files", "processes", "namespaces", "disk", "inodes")


def supply(resource: str, free: int) -> Supply:
    return Supply(resource=resource, free=free, limit=f"limit of {resource}", fix="raise it")


@pytest.mark.parametrize("resource", RESOURCES)
def test_each_resource_can_bind(resource: str) -> None:
    cost = DEFAULT_COSTS.of(resource)
    supplies = [supply(name, 10**9) for name in RESOURCES if name != resource]
    tight = supply(resource, cost.base + 10 * cost.a_trial)
    assert fit(10, [*supplies, tight]).ok
    assert fit(11, [*supplies, tight]).binding == tight


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.integers(1, 10**4), st.integers(1, 2000))
def test_what_fits_is_what_is_paid_for(free: int, base: int, a_trial: int, wanted: int) -> None:
    costs = Costs(memory=Cost(base=base, a_trial=a_trial))
    room = fit(wanted, [supply("memory", free)], costs)
    assert room.highest == 0 or base + room.highest * a_trial <= free
    assert base + (room.highest + 1) * a_trial > free
    assert room.ok is (wanted <= room.highest)


def test_what_does_not_fit_names_a_concurrency_that_does() -> None:
    line = fit(550, [supply("memory", 7368)]).line()
    assert line == (
        "concurrency 550 does not fit, 253 would; memory binds: 7,368 MiB free (limit of memory), "
        "1,024 + 25 MiB a trial; use --concurrency 253, or raise it"
    )


def test_where_nothing_fits_no_concurrency_is_suggested() -> None:
    line = fit(1, [supply("memory", 100)]).line()
    assert "--concurrency" not in line
    assert line.endswith("; raise it")


@given(st.integers(1, 2000), st.floats(0.1, 256), st.integers(1, 100))
def test_more_trials_than_the_cores_can_work_for_are_said_and_fewer_are_not(
    wanted: int, cores: float, a_core: int
) -> None:
    line = crowding(wanted, cores, Costs(trials_a_core=a_core))
    assert bool(line) is (wanted > max(1, int(cores * a_core)))


def test_crowded_cores_are_named_and_refuse_nothing() -> None:
    assert crowding(64, 2.0) == (
        "64 trials on 2 cores: where more than 32 compute at once, a command takes many times as "
        "long as alone and may run into its own limit"
    )
    assert crowding(6, 2.0) == ""
    assert fit(64, [supply("memory", 10**9)]).ok
