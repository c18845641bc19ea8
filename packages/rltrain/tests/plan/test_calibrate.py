# SPDX-License-Identifier: Apache-2.0
"""A machine whose truth is known is measured in one setting, and others are predicted from it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from rltrain.batch.config import BatchConfig
from rltrain.buffer.config import BufferConfig
from rltrain.plan.assumptions import Assumptions
from rltrain.plan.calibrate import Calibration, calibrated
from rltrain.plan.document import document
from rltrain.plan.plan import Plan, Tables, planned
from rltrain.plan.show import head
from rltrain.refused import Refused
from rltrain.rollout.config import RolloutConfig

from .configs import LLAMA_3_8B, asked
from .machine import FIXED_S, SEQUENCE_S, STEP_S, TOKEN_S, TURNS, Machine, Setting

TOLD = Assumptions()
KNOWN = Setting(concurrency=12, staleness=3)
OTHERS = (
    Setting(concurrency=4, staleness=1),
    Setting(concurrency=24, staleness=3),
    Setting(concurrency=8, staleness=0),
    Setting(concurrency=16, staleness=2, prompts=8),
)
WAITS_S = 0.5 + 0.125 + 4 * (0.325 + 0.11) + 0.6
"""Of the mean trial of the machine, alone."""


@cache
def machine(setting: Setting) -> Machine:
    return Machine(setting, steps=24)


@pytest.fixture(scope="module")
def known() -> Machine:
    return machine(KNOWN)


@pytest.fixture(scope="module")
def found(known: Machine, tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    return calibrated(known.leave(tmp_path_factory.mktemp("run")), TOLD)


def of(setting: Setting, found: Calibration) -> Plan:
    """A plan for a setting that was not run."""
    tables = Tables(
        batch=BatchConfig(
            prompts=setting.prompts, samples=setting.samples, micro_batch_tokens=8192
        ),
        buffer=BufferConfig(staleness=setting.staleness),
        rollout=RolloutConfig(
            concurrency=setting.concurrency, context_tokens=8192, at_work=TURNS, kv_cache_gib=64
        ),
    )
    return planned(
        asked(
            config=LLAMA_3_8B,
            told=found.told,
            fixed=found.fixed,
            tables=tables,
            calibration=found,
            grid=str(setting.concurrency),
            steps=24,
        )
    )


def test_a_run_is_measured_from_what_it_left(known: Machine, found: Calibration) -> None:
    assert found.steps_per_h == pytest.approx(known.steps_per_h, rel=0.05)
    assert found.running == pytest.approx(12, rel=0.05)
    assert 0 < found.sampling < found.running
    assert 0.5 < found.training < 0.9
    assert found.told.cores == 2.0
    assert found.told.faults == 0.0


def test_what_shared_cores_added_is_taken_out(found: Calibration) -> None:
    """All of it took four to six times as long as it would have alone."""
    assert 4 < found.slow < 6
    trainer, engine = found.told.trainer, found.told.engine
    assert trainer.token_s is not None
    assert engine.step_s is not None
    assert engine.sequence_s is not None
    tokens = 16 * 390
    step_s = trainer.fixed_s + trainer.token_s * tokens
    assert step_s == pytest.approx(FIXED_S + TOKEN_S * tokens, rel=0.15)
    token_s = engine.step_s + found.sampling * engine.sequence_s
    assert token_s == pytest.approx(STEP_S + found.sampling * SEQUENCE_S, rel=0.15)
    assert found.population.mean("waits_s") == pytest.approx(WAITS_S, rel=0.15)


def test_turns_that_were_waited_for_are_taken_out(tmp_path: Path) -> None:
    """24 at once, of which 8 have a turn: they are those of the machine with 12 all the same."""
    found = calibrated(machine(OTHERS[1]).leave(tmp_path), TOLD)
    assert found.running == pytest.approx(24, rel=0.05)
    assert found.population.mean("waits_s") == pytest.approx(WAITS_S, rel=0.15)


@pytest.mark.parametrize("setting", OTHERS, ids=str)
def test_another_setting_is_predicted_within_a_quarter(
    found: Calibration, setting: Setting
) -> None:
    """Seen were 10 % at most, over seven settings and four of them calibrated by."""
    plan = of(setting, found)
    truth = machine(setting).steps_per_h
    assert plan.steps_per_h(plan.own) == pytest.approx(truth, rel=0.25)


def test_what_its_own_simulation_is_off_by_is_told(found: Calibration) -> None:
    plan = of(KNOWN, found)
    assert plan.factor == pytest.approx(1.0, abs=0.15)
    assert plan.steps_per_h(plan.own) == pytest.approx(found.steps_per_h, rel=0.05)
    told = document(plan)["calibrated"]
    assert told["factor"] == plan.factor
    assert told["steps_per_h"] == found.steps_per_h
    assert head(plan)[-1].endswith(f"is corrected by {plan.factor:.2f}")


def test_a_run_that_has_only_begun_is_refused(tmp_path: Path) -> None:
    run = Machine(Setting(concurrency=8, staleness=1), steps=3).leave(tmp_path)
    with pytest.raises(Refused, match="has 3 steps, and 4 are wanted to calibrate by"):
        calibrated(run, TOLD)


def test_a_run_without_trials_is_refused(known: Machine, tmp_path: Path) -> None:
    run = known.leave(tmp_path)
    for each in (run / "trajectories").iterdir():
        each.unlink()
    with pytest.raises(Refused, match="no trajectory store below it has a trial with times"):
        calibrated(run, TOLD)


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"holds no run\.json"):
        calibrated(tmp_path, TOLD)


def test_a_run_on_gpus_shares_no_cores(known: Machine, tmp_path: Path) -> None:
    config = known.leave(tmp_path) / "config.toml"
    config.write_text(config.read_text() + "[cluster]\ngpus_per_node = 8\n")
    found = calibrated(tmp_path, TOLD)
    assert (found.told.cores, found.slow) == (0.0, 1.0)
