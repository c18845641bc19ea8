# SPDX-License-Identifier: Apache-2.0
"""Runs at a pace, against the simulator without one and against what can be worked out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rltrain.buffer.config import BufferConfig
from rltrain.buffer.simulate import Lengths, Setting, simulate
from rltrain.plan.clock import Went, went
from rltrain.plan.speed import Engine, Trainer, speed_of
from rltrain.plan.trials import Population, Trial
from rltrain.refused import Refused

FIRST, LAST = 5, 35


def trials(lengths: list[list[int]], waits_s: float = 60.0) -> list[list[Trial]]:
    return [
        [
            Trial(tokens=each, prompt=0, sampled=each, waits_s=waits_s, live=each / 2)
            for each in group
        ]
        for group in lengths
    ]


def run(
    setting: Setting,
    made: list[list[Trial]],
    engine: Engine,
    trainer: Trainer,
    *,
    cores: float = 0.0,
    box_share: float = 0.0,
    first: int = FIRST,
) -> Went:
    population = Population(groups=tuple(map(tuple, made)), source="")
    speed = speed_of(population, engine, 1, trainer, cores=cores, box_share=box_share)
    return went(setting, made, speed, first, LAST)


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_at_one_pace_it_is_the_simulator_of_bar_10(staleness: int) -> None:
    setting = Setting(
        buffer=BufferConfig(staleness=staleness),
        prompts=4,
        samples=4,
        slots=40,
        steps=45,
    )
    lengths = setting.drawn(Lengths())
    found = run(
        setting,
        trials(lengths),
        Engine(step_s=0.02, sequence_s=0.0, read_s=0.0),
        Trainer(fixed_s=300.0, token_s=0.0, sync_s=10.0),
    )
    steps = simulate(setting, lengths).steps
    expected = 3600 * (LAST - FIRST) / (steps[LAST].at_s - steps[FIRST].at_s)
    assert found.steps_per_h == pytest.approx(expected, rel=1e-6)


EVEN = [[1_000] * 4 for _ in range(4 * 50)]
ENGINE = Engine(step_s=0.02, sequence_s=0.0, read_s=0.0)


def test_a_synchronous_step_takes_its_trials_the_trainer_and_the_sync() -> None:
    setting = Setting(buffer=BufferConfig(staleness=0), prompts=4, samples=4, slots=16, sync_s=5.0)
    trainer = Trainer(fixed_s=30.0, token_s=0.001, sync_s=5.0)
    found = run(setting, trials(EVEN), ENGINE, trainer)
    step = (60 + 20) + (30 + 16) + 5
    assert found.steps_per_h == pytest.approx(3600 / step, rel=1e-6)
    assert found.training == pytest.approx(46 / step)
    assert found.waiting == pytest.approx(80 / step)
    assert found.running == pytest.approx(16 * 80 / step)
    assert found.room == pytest.approx(16 - 16 * 46 / step)
    assert (found.staleness, found.stalest, found.lost) == (0.0, 0, 0.0)


def test_a_slow_trainer_is_never_kept_waiting() -> None:
    setting = Setting(buffer=BufferConfig(staleness=3), prompts=4, samples=4, slots=64, sync_s=1.0)
    found = run(setting, trials(EVEN), ENGINE, Trainer(fixed_s=300.0, token_s=0.0, sync_s=1.0))
    assert found.steps_per_h == pytest.approx(3600 / 301, rel=1e-3)
    assert found.waiting == pytest.approx(0.0, abs=1e-3)
    assert found.training == pytest.approx(300 / 301, rel=1e-3)


def test_what_is_under_way_is_what_ends_in_a_second_by_its_time() -> None:
    """Little's law, where slots bind and the engine slows with what is under way."""
    setting = Setting(buffer=BufferConfig(staleness=7), prompts=4, samples=4, slots=12, sync_s=0.0)
    engine = Engine(step_s=0.01, sequence_s=0.004, read_s=0.0)
    lengths = [[1_000 + 100 * (n % 7)] * 4 for n in range(4 * 60)]
    found = run(setting, trials(lengths), engine, Trainer(fixed_s=1.0, token_s=0.0, sync_s=0.0))
    assert found.running == pytest.approx(12.0, rel=0.01)
    assert found.samples_per_h / 3600 * found.trial_s == pytest.approx(found.running, rel=0.02)


def test_a_shared_machine_does_as_many_steps_as_it_has_cores_for() -> None:
    """16 trials of 10 s of a core and a step of 20 s of both, on 2 cores: 100 s, whoever waits for
    whom."""
    setting = Setting(buffer=BufferConfig(staleness=7), prompts=4, samples=4, slots=32, sync_s=0.0)
    engine = Engine(step_s=1e-6, sequence_s=0.0, read_s=0.0, threads=0.0)
    trainer = Trainer(fixed_s=20.0, token_s=0.0, sync_s=0.0, threads=2.0)
    made = trials(EVEN, waits_s=10.0)
    found = run(setting, made, engine, trainer, cores=2.0, box_share=1.0, first=20)
    assert found.steps_per_h == pytest.approx(36.0, rel=0.03)


def test_the_same_setting_goes_the_same_way() -> None:
    setting = Setting(
        buffer=BufferConfig(staleness=3), prompts=4, samples=4, slots=24, steps=45, seed=3
    )
    made = trials(setting.drawn(Lengths()))
    trainer = Trainer(fixed_s=100.0, token_s=1e-4, sync_s=1.0)
    engine = replace(ENGINE, sequence_s=0.001)
    assert run(setting, made, engine, trainer) == run(setting, made, engine, trainer)


def test_prompts_are_offered_again_where_faults_take_their_groups() -> None:
    """A third of the attempts fault, so groups are dropped, and more of them are begun."""
    setting = Setting(
        buffer=BufferConfig(staleness=1), prompts=4, samples=2, slots=64, fault_share=0.35
    )
    found = run(setting, trials(EVEN[:140]), ENGINE, Trainer(fixed_s=1.0, token_s=0.0, sync_s=0.0))
    assert found.steps == LAST - FIRST
    assert found.lost > 0.1


def test_trials_that_are_all_given_up_are_refused_and_do_not_go_on_for_ever() -> None:
    """There was no step to come, and the run ended in a traceback."""
    setting = Setting(
        buffer=BufferConfig(staleness=1, bound_wait_s=70.0), prompts=4, samples=4, slots=16
    )
    with pytest.raises(Refused, match=r"each takes 80 s, and buffer\.bound_wait_s is 70"):
        run(setting, trials(EVEN), ENGINE, Trainer(fixed_s=1.0, token_s=0.0, sync_s=0.0))


def test_two_speeds_are_compared_on_the_same_faults() -> None:
    """What is faster takes more steps, though faults take other moments of it."""
    setting = Setting(
        buffer=BufferConfig(staleness=3), prompts=4, samples=4, slots=24, fault_share=0.1
    )
    made = trials(setting.drawn(Lengths()))
    trainer = Trainer(fixed_s=100.0, token_s=0.0, sync_s=1.0)
    rates = [
        run(setting, made, replace(ENGINE, step_s=0.02 * slower), trainer).steps_per_h
        for slower in (1.0, 1.05, 1.1, 1.2)
    ]
    assert rates == sorted(rates, reverse=True)


def test_a_strict_order_has_no_length_bias_and_an_unbounded_one_has() -> None:
    """The first steps are held against the prompts that were offered first, not against chance."""
    setting = Setting(prompts=4, samples=4, slots=200, steps=45, trainer_s=1.0)
    made = trials(setting.drawn(Lengths()))
    trainer = Trainer(fixed_s=1.0, token_s=0.0, sync_s=0.0)
    strict = replace(setting, buffer=BufferConfig(staleness=7, order="strict", head_start=0))
    free = replace(setting, buffer=BufferConfig(staleness=99, order="completion", head_start=0))
    assert run(strict, made, ENGINE, trainer).bias == pytest.approx(0.0, abs=1e-9)
    assert run(free, made, ENGINE, trainer).bias < -0.1
