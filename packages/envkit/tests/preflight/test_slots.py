# SPDX-License-Identifier: Apache-2.0
"""What a trial took of its slot."""

from typing import Any

import pytest

from envkit.preflight.slots import box_s, cpu_s, peak_memory_mib, slot_s, span_s

PHASES = {"start": 1.0, "gateway": 0.5, "hold": 30.0, "act": 2.0, "grade": 1.0, "regrade": 9.0}


def record(make: Any, *attempts: Any, **changes: Any) -> Any:
    return make.record(make.plan(("fact",), 1).specs[0], *attempts, **changes)


def test_the_barrier_and_a_second_grading_take_no_slot(make: Any) -> None:
    assert slot_s(record(make, make.attempt(phases=PHASES))) == pytest.approx(4.5)


def test_every_attempt_takes_its_slot(make: Any) -> None:
    first = make.attempt(phases={"start": 1.0}, reward=None, faults=(make.fault(),))
    assert slot_s(record(make, first, make.attempt(2, phases=PHASES))) == pytest.approx(5.5)


def test_an_attempt_that_told_nothing_is_taken_by_the_clock(make: Any) -> None:
    died = make.attempt(phases={}, reward=None, faults=(make.fault(),))
    assert slot_s(record(make, died, seconds=60.0)) == 60.0
    again = record(make, died, make.attempt(2, phases=PHASES), seconds=100.0)
    assert slot_s(again) == pytest.approx(100 - 39)


def test_boxes_live_as_long_as_they_are_needed(make: Any) -> None:
    assert box_s(record(make, make.attempt(phases=PHASES))) == pytest.approx(
        {"agent": 4.5, "gateway": 4.5, "verifier": 1.0}
    )


def test_cpu_is_added_and_memory_is_the_highest(make: Any) -> None:
    two = record(make, make.attempt(), make.attempt(2, peak_memory_mib=9.0))
    assert (cpu_s(two), peak_memory_mib(two)) == (1.5, 21.0)


def test_cpu_of_a_second_grading_is_no_part_of_the_trial(make: Any) -> None:
    again = make.attempt(cpu_by_phase={"act": 0.3, "regrade": 0.25})
    assert cpu_s(record(make, again)) == pytest.approx(0.5)


def test_a_run_lasts_from_its_first_start_to_its_last_end(make: Any) -> None:
    begin = make.begin
    records = [
        record(make, make.attempt(started_at=begin + at), seconds=took)
        for at, took in ((5.0, 1.0), (0.0, 10.0), (2.0, 3.0))
    ]
    never = record(make, make.attempt(started_at=0.0), seconds=0.0)
    assert span_s([*records, never]) == pytest.approx(10.0)
    assert span_s([never]) == 0.0
