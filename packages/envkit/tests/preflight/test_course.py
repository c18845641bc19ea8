# SPDX-License-Identifier: Apache-2.0
"""A run over time: what is kept of it, however long it is."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envkit.preflight.course import (
    CHANGES,
    LANES,
    POINTS,
    Track,
    course_of,
    joined,
)
from envkit.preflight.course_json import from_json, to_json
from envkit.preflight.curves import in_phase, stretches
from envkit.preflight.types import Course, Lane, RunGauges, TrialEnded, TrialPhase


def gauges(live: int, memory_mib: float = 1.0, stall_ms: float = 0.0) -> RunGauges:
    return RunGauges(live_boxes=live, memory_mib=memory_mib, loop_stall_ms=stall_ms)


def phases(track: Track, trial: str, *changes: tuple[float, str]) -> None:
    for at, phase in changes:
        track.note(at, TrialPhase(trial_id=trial, phase=phase))


def test_a_lane_is_a_trials_phases_until_it_ends(make: Any) -> None:
    spec = make.plan().specs[0]
    track = Track()
    phases(track, spec.trial_id, (1.0, "start"), (2.0, "act"), (5.5, "stop"))
    track.note(6.0, TrialEnded(record=make.record(spec)))
    (lane,) = course_of(track, []).lanes
    assert stretches(lane) == [(1.0, 2.0, "start"), (2.0, 5.5, "act"), (5.5, 6.0, "stop")]


def test_the_barrier_is_where_the_first_trial_leaves_its_wait() -> None:
    track = Track()
    phases(track, "a", (1.0, "start"), (2.0, "hold"), (4.0, "setup"))
    phases(track, "b", (1.0, "start"), (3.0, "hold"), (4.1, "setup"))
    assert course_of(track, []).barriers_s == (4.0,)


def test_a_trial_that_died_waiting_did_not_open_the_barrier() -> None:
    track = Track()
    phases(track, "a", (1.0, "hold"), (2.0, ""))
    assert course_of(track, []).barriers_s == ()


def test_faults_stand_where_their_attempts_ended(make: Any) -> None:
    spec = make.plan().specs[0]
    died = make.attempt(reward=None, faults=(make.fault(),))
    record = make.record(spec, died, make.attempt(2))
    track = Track()
    phases(track, spec.trial_id, (0.0, "start"), (1.0, "act"), (3.0, "start"), (4.0, "act"))
    track.note(5.0, TrialEnded(record=record))
    assert course_of(track, [record]).lanes[0].faults == ((3.0, "SandboxDied"),)


def test_an_attempt_that_was_cut_off_is_none_of_the_records(make: Any) -> None:
    spec = make.plan().specs[0]
    record = make.record(spec, make.attempt(reward=None, faults=(make.fault(),)))
    track = Track()
    phases(track, spec.trial_id, (0.0, "start"), (1.0, ""), (2.0, "start"), (3.0, "act"))
    track.note(5.0, TrialEnded(record=record))
    assert course_of(track, [record]).lanes[0].faults == ((5.0, "SandboxDied"),)


def test_a_long_run_is_thinned_and_keeps_the_highest_of_each_gauge() -> None:
    track = Track()
    for n in range(10_000):
        peak = gauges(550, 9000.0, 70.0) if n == 4321 else gauges(3)
        track.note(0.25 * n, peak)
    readings = course_of(track, []).readings
    assert len(readings) == POINTS
    assert max((r.live, r.memory_mib, r.stall_ms) for r in readings) == (550, 9000.0, 70.0)
    assert readings[-1].at_s == 0.25 * 9999


def test_of_too_many_trials_some_have_a_lane_and_the_rest_are_counted() -> None:
    track = Track()
    for n in range(LANES + 300):
        phases(track, f"t{n}", (float(n), "start"), (n + 1.0, ""))
    course = course_of(track, [])
    assert (len(course.lanes), course.left_out) == (LANES, 300)
    assert course.lanes[0].trial == "t0"


def test_a_lane_of_a_thousand_calls_keeps_its_longest_stretches() -> None:
    track = Track()
    changes = [(n * 0.1, "think" if n % 2 else "act") for n in range(1000)]
    phases(track, "a", *changes, (200.0, "stop"), (201.0, ""))
    (lane,) = course_of(track, []).lanes
    assert len(lane.at_s) == CHANGES
    assert (lane.at_s[0], lane.at_s[-1], lane.phases[-1]) == (0.0, 201.0, "")
    assert (200.0, 201.0, "stop") in stretches(lane)


def test_runs_one_after_the_other_are_one_course() -> None:
    track = Track()
    track.note(1.0, gauges(2))
    phases(track, "a", (0.5, "hold"), (1.0, "act"), (2.0, ""))
    one = course_of(track, [])
    course = joined([(10.0, one), (5.0, one)])
    assert [reading.at_s for reading in course.readings] == [1.0, 11.0]
    assert [lane.at_s for lane in course.lanes] == [(0.5, 1.0, 2.0), (10.5, 11.0, 12.0)]
    assert course.barriers_s == (1.0, 11.0)


times = st.lists(st.integers(0, 10_000), min_size=1, max_size=80).map(
    lambda ms: [n / 1000 for n in sorted(ms)]
)


@given(st.lists(times, max_size=5), times)
def test_every_moment_of_a_lane_is_in_one_phase_and_nothing_is_lost_on_the_way(
    many: list[list[float]], read_at: list[float]
) -> None:
    track = Track()
    for at in read_at:
        track.note(at, gauges(len(many), 12.5, 1.5))
    for n, moments in enumerate(many):
        phases(track, f"t{n}", *((at, "act") for at in moments))
    course = course_of(track, [])
    counts = in_phase(course.lanes, read_at)
    running = [sum(lane.at_s[0] <= at for lane in course.lanes) for at in read_at]
    assert counts.get("act", [0] * len(read_at)) == running
    assert from_json(to_json(course)) == course


def test_trials_in_no_phase_are_in_none() -> None:
    lane = Lane(trial="a", at_s=(1.0, 2.0, 4.0), phases=("act", "", "stop"))
    assert in_phase([lane], [0.0, 1.5, 3.0, 5.0]) == {"act": [0, 1, 0, 0], "stop": [0, 0, 0, 1]}
    assert from_json(to_json(Course())) == Course()
