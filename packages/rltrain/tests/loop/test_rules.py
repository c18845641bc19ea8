# SPDX-License-Identifier: Apache-2.0
"""Rules stop a run by the number that breaks them, and by nothing else."""

import math

import pytest

from rltrain.loop.rules import FEWEST, WINDOW, RuleBroken, Rules, RulesConfig, Trials

GOOD = {
    "loss/value": -0.1,
    "loss/entropy": 0.5,
    "optimizer/gradient_norm": 0.3,
    "rollout/fault_rate": 0.02,
    "reward/mean": 0.4,
}


def after(steps: int, config: RulesConfig | None = None, **numbers: float) -> Rules:
    rules = Rules(config or RulesConfig())
    for step in range(steps):
        rules.expect(step, {**GOOD, **numbers})
    return rules


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("loss/value", math.nan, "loss/value is nan"),
        ("optimizer/gradient_norm", math.inf, "optimizer/gradient_norm is inf"),
        ("optimizer/gradient_norm", 9.0, "norm 9 is 30 times the usual"),
        ("loss/entropy", 0.04, "entropy fell from 0.5 to 0.04"),
    ],
)
def test_a_number_that_breaks_a_rule_stops_the_run(name: str, value: float, why: str) -> None:
    rules = after(WINDOW)
    with pytest.raises(RuleBroken, match=why):
        rules.expect(WINDOW, {**GOOD, name: value})


def test_faults_stop_a_run_by_their_rate_over_several_steps() -> None:
    rules = after(FEWEST, **{"rollout/fault_rate": 0.4})
    rules.expect(FEWEST, {**GOOD, "rollout/fault_rate": 0.9})
    with pytest.raises(RuleBroken, match="faults took 5"):
        rules.expect(FEWEST + 1, {**GOOD, "rollout/fault_rate": 1.0})


def test_a_reward_that_rises_together_with_faults_stops_the_run() -> None:
    rules = after(WINDOW)
    with pytest.raises(RuleBroken, match=r"rose by 0\.20 while the fault rate rose by 0\.18"):
        rules.expect(WINDOW, {**GOOD, "reward/mean": 0.6, "rollout/fault_rate": 0.2})


@pytest.mark.parametrize("change", [{"reward/mean": 0.9}, {"rollout/fault_rate": 0.2}])
def test_either_of_them_alone_does_not(change: dict[str, float]) -> None:
    after(WINDOW).expect(WINDOW, {**GOOD, **change})


def test_nothing_is_compared_with_too_few_steps() -> None:
    after(FEWEST - 1).expect(FEWEST - 1, {**GOOD, "optimizer/gradient_norm": 9.0})


def test_a_rule_of_bound_zero_is_off() -> None:
    off = RulesConfig(gradient_spike=0, entropy_share=0, fault_rate=0, reward_with_faults=0)
    worst = {"optimizer/gradient_norm": 99.0, "loss/entropy": 0.0, "rollout/fault_rate": 1.0}
    after(WINDOW, off).expect(WINDOW, {**GOOD, **worst, "reward/mean": 1.0})


def test_a_step_on_nothing_breaks_no_rule() -> None:
    after(WINDOW).expect(WINDOW, {"reward/mean": math.nan})


def test_a_bound_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="fault_rate: -1 is below 0"):
        RulesConfig(fault_rate=-1)


def test_trials_that_all_fail_stop_a_run_that_never_takes_a_step() -> None:
    trials = Trials(RulesConfig(fault_rate=0.5), 8)
    for fault in ("PromptTooLong: 2267 tokens", "", "", "", "PromptTooLong: 2267 tokens"):
        trials.ended(fault)
    trials.ended("EngineBusy")
    trials.ended("PromptTooLong: 2267 tokens")
    with pytest.raises(RuleBroken, match="took 5 of the last 8 trials, 4 of them: Prompt"):
        trials.ended("PromptTooLong: 2267 tokens")


def test_a_few_faults_at_the_beginning_stop_nothing() -> None:
    trials = Trials(RulesConfig(fault_rate=0.5), 8)
    for fault in ("EngineBusy",) * 4 + ("",) * 20:
        trials.ended(fault)


def test_a_bound_of_zero_lets_all_of_them_fail() -> None:
    trials = Trials(RulesConfig(fault_rate=0), 2)
    for _ in range(9):
        trials.ended("EngineBusy")
