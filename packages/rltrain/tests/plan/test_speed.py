# SPDX-License-Identifier: Apache-2.0
"""Steady states that can be worked out by hand, and laws that hold in every one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from rltrain.plan.speed import Engine, Speed, Trainer

TRAINER = Trainer(fixed_s=10.0, token_s=0.0, sync_s=1.0, threads=1.0)
ENGINE = Engine(step_s=0.01, sequence_s=0.0, read_s=0.0)


def speed(**changed: object) -> Speed:
    """Trials of 10 s of waiting and 1,000 sampled tokens, 10 s at one speed whatever is beside."""
    given: dict[str, object] = {
        "engine": ENGINE,
        "engines": 1,
        "trainer": TRAINER,
        "cores": 0.0,
        "at_work": 0.0,
        "box_share": 0.0,
        "waits_s": 10.0,
        "sampled": 1000.0,
        "read": 0.0,
    }
    return Speed(**given | changed)  # pyright: ignore[reportArgumentType]


def test_alone_a_trial_takes_what_it_waits_and_what_it_samples() -> None:
    load = speed().at(1, training=False)
    assert load.trial_s == pytest.approx(20.0)
    assert load.sampling == pytest.approx(0.5, rel=1e-4)


def test_an_engine_works_for_the_part_of_the_trials_that_is_not_waiting() -> None:
    """Little's law: so many as come in a second, by the time each is there."""
    for running in (1, 8, 64):
        load = speed().at(running, training=False)
        assert load.sampling == pytest.approx(running / load.trial_s * 10.0, rel=1e-3)


def test_a_saturated_engine_gives_what_it_has_whatever_is_under_way() -> None:
    """Each sequence adds 0.01 s to a step: 100 tokens a second, so a trial in 10 s."""
    busy = speed(engine=Engine(step_s=0.0, sequence_s=0.01, read_s=0.0))
    for running in (40, 80, 160):
        load = busy.at(running, training=False)
        assert running / load.trial_s == pytest.approx(0.1, rel=1e-3)


def test_tokens_that_are_read_take_their_part_of_a_step() -> None:
    """3 read for each sampled one, 0.001 s each: with 20 sequences 0.06 s more a step."""
    found = Engine(step_s=0.01, sequence_s=0.0, read_s=0.001)
    assert found.token_s(20, read=3) == pytest.approx(0.07)


def test_a_step_meets_more_experts_with_more_sequences() -> None:
    """1 of 4 is taken by each token."""
    found = Engine(step_s=0.0, experts_s=1.0, passed=0.75, sequence_s=0.0, read_s=0.0)
    assert found.token_s(1, 0) == pytest.approx(0.25)
    assert found.token_s(2, 0) == pytest.approx(1 - 0.75**2)


def test_work_on_engines_is_divided() -> None:
    slow = Engine(step_s=0.0, sequence_s=0.01, read_s=0.0)
    one, four = (speed(engine=slow, engines=n).at(80, training=False).trial_s for n in (1, 4))
    assert one == pytest.approx(4 * four, rel=1e-3)


# --- cores ----------------------------------------------------------------------------------------

BOXES = speed(
    cores=2.0, box_share=1.0, engine=replace(ENGINE, step_s=1e-6, threads=0.0), waits_s=1.0
)
"""Trials of a second of a core each, and nearly nothing else."""


def test_cores_are_never_busier_than_they_can_be() -> None:
    for running, per_s in ((1, 1.0), (2, 2.0), (8, 2.0), (64, 2.0)):
        load = BOXES.at(running, training=False)
        assert running / load.trial_s == pytest.approx(per_s, rel=0.01)


def test_what_a_trial_waits_for_and_does_not_compute_takes_no_longer() -> None:
    """Half of 10 s is a core's, of which there is one: 10 of them end every 50 s, of which each
    computes 5 s nine times as long."""
    half = replace(BOXES, cores=1.0, box_share=0.5, waits_s=10.0, _known={})
    load = half.at(10, training=False)
    assert load.trial_s == pytest.approx(50.0, rel=1e-3)
    assert load.crowd.slow == pytest.approx(9.0, rel=1e-3)


def test_a_trainer_takes_an_equal_part() -> None:
    """It and 7 trials on 2 cores: each has a quarter of one."""
    load = BOXES.at(7, training=True)
    assert load.crowd.slow == pytest.approx(4.0, rel=0.01)
    assert load.trial_s == pytest.approx(4.0, rel=0.01)


def test_turns_leave_the_trainer_its_part_however_many_are_under_way() -> None:
    """3 trials compute at once, beside the trainer: 2 each of 4; the others wait."""
    few = replace(BOXES, at_work=3.0, _known={})
    for running in (3, 30, 300):
        load = few.at(running, training=True)
        assert load.crowd.slow == pytest.approx(2.0, rel=0.02)
        assert running / load.trial_s == pytest.approx(1.5, rel=0.02)


def test_more_trials_make_none_of_them_faster() -> None:
    crowd = speed(cores=2.0, at_work=8.0, box_share=0.8, engine=replace(ENGINE, sequence_s=0.001))
    for training in (False, True):
        times = [crowd.at(running, training).trial_s for running in range(1, 60)]
        assert all(a <= b * (1 + 1e-4) for a, b in pairwise(times))


def test_a_recorded_machine_is_told_by_one_of_its_levels() -> None:
    """benchmarks/results/ramp_550.json: on two cores 8 at once did 2.42 trials a second; by the
    utilisation law that is 0.826 s of a core each. Then 1 does 1.21 (it did 1.24), and 64 do 2.42
    (they did 2.42)."""
    told = replace(BOXES, waits_s=2 / 2.42, _known={})
    for running, measured in ((1, 1.236), (64, 2.420), (256, 2.145)):
        predicted = running / told.at(running, training=False).trial_s
        assert predicted == pytest.approx(measured, rel=0.15)


def test_a_step_takes_what_it_has_of_tokens_and_pairs() -> None:
    trainer = Trainer(fixed_s=5.0, token_s=0.1, pair_s=0.01, sync_s=0.0)
    assert trainer.step_s((10, 20)) == pytest.approx(5 + 3 + 0.01 * (100 + 400))


def test_a_trainer_alone_has_the_cores_to_itself() -> None:
    """Not those of a trial that is not there: it was taken for one."""
    both = replace(BOXES, trainer=replace(TRAINER, threads=2.0), _known={})
    assert both.at(0, training=True).crowd.slow == 1.0
