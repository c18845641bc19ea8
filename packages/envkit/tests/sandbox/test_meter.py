# SPDX-License-Identifier: Apache-2.0
import os
import time

from hypothesis import given
from hypothesis import strategies as st

from envkit.sandbox import loopio
from envkit.sandbox.meter import Meter

SECONDS = st.floats(0, 1e6, allow_nan=False)


def test_a_phase_gets_what_was_used_while_it_ran() -> None:
    meter = Meter()
    meter.enter("start", trial_s=1.0, boxes_s=0.0)
    meter.enter("act", trial_s=2.0, boxes_s=3.0)
    meter.enter("grade", trial_s=2.0, boxes_s=10.0)
    meter.box_gone(10.5, forks_s=0.5)
    assert meter.end(trial_s=2.5) == {"start": 5.0, "act": 7.0, "grade": 1.0}
    assert meter.forks_s == 0.5


def test_a_box_that_is_in_neither_sum_while_it_closes_is_counted_when_it_is_gone() -> None:
    meter = Meter()
    meter.enter("grade", trial_s=1.0, boxes_s=4.0)
    meter.enter("stop", trial_s=1.0, boxes_s=0.0)
    meter.box_gone(4.5, forks_s=0.0)
    assert meter.end(trial_s=1.0) == {"start": 5.0, "stop": 0.5}


@given(st.lists(st.tuples(st.sampled_from(["start", "act", "stop"]), SECONDS, SECONDS)))
def test_no_second_is_lost_or_counted_twice(steps: list[tuple[str, float, float]]) -> None:
    meter, trial_s, boxes_s = Meter(), 0.0, 0.0
    for phase, more_trial_s, more_boxes_s in steps:
        trial_s, boxes_s = trial_s + more_trial_s, boxes_s + more_boxes_s
        meter.enter(phase, trial_s, boxes_s)
    meter.box_gone(boxes_s, forks_s=0.0)
    total = sum(meter.end(trial_s).values())
    assert abs(total - trial_s - boxes_s) <= 1e-9 * (1 + trial_s + boxes_s)


def test_the_clock_of_a_child_that_has_ended_is_read_before_it_is_reaped() -> None:
    child = os.fork()
    if child == 0:
        began = time.process_time()
        while time.process_time() - began < 0.02:
            pass
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    used = loopio.cpu_s_of(child)
    os.waitpid(child, 0)
    assert used >= 0.02
    assert loopio.cpu_s_of(child) == 0.0
