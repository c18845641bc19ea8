# SPDX-License-Identifier: Apache-2.0
"""What breaches the gate, what does not, and what is said about it."""

from dataclasses import replace
from typing import Any

import pytest

from envkit.fault import OutOfMemory, Phase, SandboxDied
from envkit.preflight import stats
from envkit.preflight.gate import Findings, breaches, count_faulted, summary
from envkit.preflight.types import BrokenTask, Leftover


def findings(plan: Any, records: Any, **changes: Any) -> Findings:
    values = {
        "plan": plan,
        "records": records,
        "fault_rate": stats.rate(*count_faulted(records)),
        "peak_live": len(plan.specs),
        "leaks": (),
    }
    return Findings(**{**values, **changes})


def test_a_clean_run_breaches_nothing_and_says_what_held(make: Any) -> None:
    plan = make.plan()
    found = findings(plan, [make.record(spec) for spec in plan.specs])
    assert breaches(found) == ()
    assert summary(found) == (
        "6 trials with reward 1.0 everywhere, 6 at once",
        "fault rate 0 % (95 % Wilson interval 0 % to 39.03 %), 0.5 % allowed",
        "nothing left behind",
    )


def test_an_attempt_that_was_run_again_is_a_fault_although_the_next_earned_the_reward(
    make: Any,
) -> None:
    plan = make.plan()
    died = make.attempt(reward=None, faults=(make.fault(),))
    records = [make.record(spec) for spec in plan.specs]
    records[0] = make.record(plan.specs[0], died, make.attempt(2))
    assert count_faulted(records) == (1, 7)
    (line,) = breaches(findings(plan, records))
    assert line.startswith("1 of 7 attempts faulted: 14.29 % (95 % Wilson interval 2.57 % to 51.31")


def test_an_attempt_run_again_counts_even_without_a_fault_on_its_record(make: Any) -> None:
    plan = make.plan(("fact",), 1)
    records = [make.record(plan.specs[0], make.attempt(), make.attempt(2))]
    assert count_faulted(records) == (1, 2)


def test_the_gate_compares_the_point_not_the_bound(make: Any) -> None:
    plan = make.plan(("fact",), 200, max_fault_rate=0.005)
    records = [make.record(spec) for spec in plan.specs]
    records[0] = make.record(
        plan.specs[0], make.attempt(reward=None, faults=(make.fault(),)), verdict="no_verdict"
    )
    found = findings(plan, records)
    assert found.fault_rate.value == 0.005 < found.fault_rate.high
    assert breaches(found) == ()
    assert breaches(replace(found, plan=replace(plan, max_fault_rate=0.0049)))


def test_what_the_model_caused_is_no_fault_of_the_environment(make: Any) -> None:
    plan = make.plan(("fact",), 2, agent="my.agents:Mine")
    caused = make.fault(OutOfMemory("3 GiB"), Phase.ACT)
    records = [make.record(s, make.attempt(reward=0.0, faults=(caused,))) for s in plan.specs]
    assert count_faulted(records) == (0, 2)
    assert breaches(findings(plan, records)) == ()


def test_a_fault_of_the_teardown_keeps_the_reward_and_counts_as_a_fault(make: Any) -> None:
    plan = make.plan(("fact",), 2)
    late = make.fault(SandboxDied("gone"), Phase.STOP)
    records = [make.record(s, make.attempt(faults=(late,)), fault=None) for s in plan.specs]
    lines = breaches(findings(plan, records))
    assert len(lines) == 1
    assert lines[0].startswith("2 of 2 attempts faulted: 100 %")


@pytest.mark.parametrize(
    ("agent", "reward", "breached"),
    [
        ("replay", 1.0, False),
        ("oracle", 1.0, False),
        ("nop", 0.0, False),
        ("replay", 0.75, True),
        ("oracle", 0.0, True),
        ("nop", 0.25, True),
        ("my.agents:Mine", 0.25, False),
    ],
)
def test_each_agent_is_held_to_its_reward(
    make: Any, agent: str, reward: float, breached: bool
) -> None:
    plan = make.plan(("fact",), 2, agent=agent)
    records = [make.record(spec, make.attempt(reward=reward)) for spec in plan.specs]
    lines = breaches(findings(plan, records))
    assert bool(lines) is breached
    if breached:
        assert lines[0].startswith("2 trials did not earn the ")
        assert lines[0].endswith(f"that {agent} must earn: fact (2)")


@pytest.mark.parametrize("reward", [1.5, -0.1, 100.0, float("inf"), float("nan")])
@pytest.mark.parametrize("agent", ["replay", "my.agents:Mine"])
def test_a_reward_outside_0_to_1_is_the_tasks_problem(make: Any, agent: str, reward: float) -> None:
    plan = make.plan(("fact", "workbook"), 1, agent=agent)
    off = make.record(plan.specs[1], make.attempt(reward=reward))
    line = breaches(findings(plan, [make.record(plan.specs[0]), off]))[-1]
    assert line == (
        "1 trial earned a reward outside 0 to 1, a problem of the task: "
        f"workbook ({reward:g}); correct its tests/"
    )


def test_a_missing_reward_without_a_fault_is_a_breach(make: Any) -> None:
    plan = make.plan()
    records = [make.record(spec) for spec in plan.specs]
    records[2] = make.record(plan.specs[2], make.attempt(reward=None))
    assert breaches(findings(plan, records)) == (
        "1 trial without a valid reward and without a fault",
    )


def test_a_broken_task_breaches_by_name(make: Any) -> None:
    broken = BrokenTask(
        trial_id="bad__000", name="no-tests", dir=make.tmp_path, problems=("tests/: missing",)
    )
    plan = make.plan(broken=(broken,))
    lines = breaches(findings(plan, [make.record(spec) for spec in plan.specs]))
    assert lines == ("1 task failed the static checks and did not run: no-tests",)


def test_a_leak_breaches_and_names_the_way_to_remove_it(make: Any) -> None:
    plan = make.plan()
    leaks = (Leftover(kind="process", what="71 bwrap"), Leftover(kind="process", what="72 sh"))
    leaks = (*leaks, Leftover(kind="mount", what="/m"))
    lines = breaches(findings(plan, [make.record(spec) for spec in plan.specs], leaks=leaks))
    assert lines == (
        "left behind: 1 mount, 2 processes; what is still there goes with: envkit doctor --reap",
    )


def test_a_run_that_never_reached_its_concurrency_has_shown_nothing(make: Any) -> None:
    plan = make.plan()
    records = [make.record(spec) for spec in plan.specs]
    assert breaches(findings(plan, records, peak_live=5)) == (
        "only 5 of 6 trials were live at once",
    )


def test_fewer_trials_than_the_concurrency_need_only_be_live_themselves(make: Any) -> None:
    plan = make.plan(("fact",), 2, concurrency=64)
    assert breaches(findings(plan, [make.record(spec) for spec in plan.specs])) == ()


def test_unsafe_rewards_never_pass(make: Any) -> None:
    plan = make.plan(env="unsafe-process", concurrency=1)
    records = [make.record(s, make.attempt(reward_valid=False)) for s in plan.specs]
    (line,) = breaches(findings(plan, records))
    assert line.startswith("--env unsafe-process isolates nothing")


def test_a_hostile_task_name_cannot_forge_a_line(make: Any) -> None:
    broken = BrokenTask(
        trial_id="bad__000", name="x\nPASS\x1b[2J", dir=make.tmp_path, problems=("bad",)
    )
    plan = make.plan(broken=(broken,))
    (line,) = breaches(findings(plan, [make.record(spec) for spec in plan.specs]))
    assert "\n" not in line
    assert "\x1b" not in line
