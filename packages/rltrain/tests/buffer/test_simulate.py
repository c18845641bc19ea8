# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from rltrain.buffer.config import BufferConfig
from rltrain.buffer.simulate import Lengths, Setting, simulate

SMALL = Setting(prompts=4, samples=4, slots=40, steps=24)


def small(staleness: int, **more: object) -> Setting:
    given = {"buffer": BufferConfig(staleness=staleness), **more}
    return replace(SMALL, **given)  # pyright: ignore[reportArgumentType]


def test_the_same_setting_gives_the_same_run() -> None:
    assert simulate(small(3, fault_share=0.1)) == simulate(small(3, fault_share=0.1))


def test_a_synchronous_step_takes_its_longest_trial_the_trainer_and_the_sync() -> None:
    lengths = [[3_000, 50_000], [2_000, 10_000]]
    setting = Setting(buffer=BufferConfig(staleness=0), prompts=1, samples=2, slots=2, steps=2)
    run = simulate(setting, lengths)
    assert run.seconds == (60 + 1000) + (60 + 200) + 2 * (300 + 10)


def test_samples_stand_still_while_weights_are_synced() -> None:
    """The second group's long trial spans the first sync, and ends later by that."""
    lengths = [[100, 200], [100, 50_000]]
    setting = Setting(
        buffer=BufferConfig(staleness=1, head_start=0), prompts=1, samples=2, slots=4, steps=2
    )
    run = simulate(setting, lengths)
    assert run.steps[0].at_s == 60 + 4
    assert run.steps[1].at_s == 60 + 1000 + 10


def test_a_wider_bound_is_faster_and_never_left() -> None:
    runs = [simulate(small(bound)) for bound in (0, 1, 3)]
    rates = [run.steps_per_h for run in runs]
    assert rates == sorted(rates)
    assert rates[2] > 1.5 * rates[0]
    assert [run.over for run in runs] == [0.0, 0.0, 0.0]
    assert [run.lost for run in runs] == [0.0, 0.0, 0.0]


def test_faults_and_hung_trials_leave_no_sample_above_its_bound() -> None:
    run = simulate(small(2, fault_share=0.2, hang_share=0.05))
    assert run.stalest == 2
    assert run.lost == pytest.approx(sum(run.ledger.tokens_lost.values()) / run.sampled, rel=1e-12)
    assert set(run.ledger.tokens_lost) <= {"fault", "few_valid"}


def test_a_hung_trial_is_given_up_after_the_wait_and_its_group_closed() -> None:
    buffer = BufferConfig(staleness=1, bound_wait_s=3000.0)
    run = simulate(small(1, buffer=buffer, hang_share=0.03, hang_s=1e7, again=True))
    assert len(run.steps) == SMALL.steps
    assert run.ledger.lost["bound_wait"] > 0
    assert run.stalest <= 1
    assert run.seconds < 1e5


def test_what_is_published_leaves_the_bound_or_throws_away() -> None:
    counted = simulate(small(1, buffer=BufferConfig(staleness=1, order="completion")))
    assert counted.over > 0.05
    dropping = BufferConfig(staleness=1, order="drop_stale", head_start=0)
    dropped = simulate(small(1, buffer=dropping, again=True))
    assert dropped.over == 0.0
    assert dropped.lost > 0.05


def test_a_head_start_keeps_the_first_steps_from_short_samples() -> None:
    def first(head_start: int) -> float:
        buffer = BufferConfig(staleness=7, head_start=head_start)
        runs = [simulate(small(7, buffer=buffer, seed=seed)) for seed in range(6)]
        return statistics.fmean(run.bias(3) for run in runs)

    assert first(0) < first(2) - 0.05


def test_lengths_are_as_asked() -> None:
    drawn = Lengths().drawn(2000, 8, seed=3)
    every = [each for group in drawn for each in group]
    assert min(every) >= 2_000
    assert max(every) <= 128_000
    assert statistics.median(every) == pytest.approx(20_000, rel=0.05)
    means = statistics.pvariance([statistics.fmean(group) for group in drawn])
    assert 0.4 < means / statistics.pvariance(every) < 0.75
