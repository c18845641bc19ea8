# SPDX-License-Identifier: Apache-2.0
"""A ramp over a launcher that follows a script: levels, knee, interruptions, report."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.fault import HarnessError, SandboxDied
from envkit.preflight.command import finish
from envkit.preflight.host import Supply
from envkit.preflight.knee import NEARLY, knee_line, level_of, ramp_of
from envkit.preflight.levels import parse_levels, plans_of, whole
from envkit.preflight.measures import read_measures
from envkit.preflight.options import Options
from envkit.preflight.place import open_place, release
from envkit.preflight.ramp import run_ramp, together
from envkit.preflight.report import could_not_run, counted
from envkit.preflight.report_json import to_json
from envkit.preflight.types import BrokenTask, Level, Plan, Report, Verdict

LEVELS = (2, 4, 8)


def ramp(make: Any, script: Any = None, **changes: Any) -> Report:
    """Two tasks at three levels; ``script`` makes each level's launcher from its plan."""
    levels = changes.pop("levels", LEVELS)
    supplies = changes.pop("supplies", make.roomy)
    plan = make.plan(samples=levels[-1] // 2, **changes)
    plans = plans_of(plan, levels, None)
    return asyncio.run(
        run_ramp(
            whole(plan, plans), plans, script or (lambda _: make.launcher()),
            lambda _: make.view(), supplies=supplies, settle_s=0.0,
        )
    )  # fmt: skip


def level(concurrency: int, per_s: float) -> Level:
    return replace(level_of(could_not_run(["x"]), concurrency), per_s=per_s)


def test_every_level_runs_the_same_tasks_and_fills_its_concurrency_once(make: Any) -> None:
    report = ramp(make)
    assert report.verdict is Verdict.PASS
    assert report.ramp is not None
    assert [each.concurrency for each in report.ramp.levels] == [2, 4, 8]
    assert [len(each.trials) for each in report.ramp.levels] == [2, 4, 8]
    tasks = [{trial.rpartition("__")[0] for trial in each.trials} for each in report.ramp.levels]
    assert tasks == [{"fact", "workbook"}] * 3


def test_no_two_trials_of_a_ramp_share_an_id_or_a_directory(make: Any) -> None:
    report = ramp(make)
    assert len({record.trial_id for record in report.records}) == 14
    assert len({record.trial_dir for record in report.records}) == 14
    assert {r.trial_dir.parent.name for r in report.records} == {"at-2", "at-4", "at-8"}


def test_with_repeat_every_level_has_as_many_trials(make: Any) -> None:
    plan = make.plan(samples=3)
    assert [len(each.specs) for each in plans_of(plan, (2, 4), repeat=3)] == [6, 6]


def test_all_figures_are_over_all_levels_and_each_level_has_its_own(make: Any) -> None:
    report = ramp(make)
    assert (report.trials, report.attempts, report.peak_live) == (14, 14, 8)
    assert report.rewards.n == 14
    assert report.cpu_s["trial"] == pytest.approx(7.0)
    assert report.ramp is not None
    top = report.ramp.levels[-1]
    assert (top.valid, top.peak_live, top.cpu_s) == (8, 8, 0.75)
    assert top.trial_s is not None
    assert top.trial_s.p95 == pytest.approx(4.4)
    assert top.seconds == pytest.approx(4.4)
    assert top.per_s == pytest.approx(8 / 4.4)


def test_the_wait_at_the_barrier_is_in_the_throughput_and_in_no_trials_seconds(make: Any) -> None:
    plan = make.plan(("fact",), 1)
    waited = make.attempt(phases={"start": 1.0, "hold": 30.0, "act": 2.0})
    record = make.record(plan.specs[0], waited, seconds=33.0)
    found = level_of(counted(could_not_run(["x"]), plan, (record,)), 1)
    assert found.trial_s is not None
    assert found.trial_s.max == 3.0
    assert found.per_s == pytest.approx(1 / 33)


def test_a_level_times_the_trials_that_earned_something(make: Any) -> None:
    plan = make.plan(("fact",), 2)
    short = make.attempt(phases={"start": 0.1}, reward=None, faults=(make.fault(),))
    records = (make.record(plan.specs[0], short), make.record(plan.specs[1]))
    found = level_of(counted(could_not_run(["x"]), plan, records), 2)
    assert found.trial_s is not None
    assert found.trial_s.n == 1
    assert found.valid == 1


def test_cpu_of_what_works_for_all_is_not_counted_twice_where_it_counts_on(make: Any) -> None:
    one = replace(could_not_run(["x"]), verdict=Verdict.PASS, plan=make.plan())
    levels = [
        replace(one, shared_cpu_s={"runner": 1.0, "fork server": 2.0}),
        replace(one, shared_cpu_s={"runner": 3.0, "fork server": 4.0}),
    ]
    assert together(make.plan(), levels).shared_cpu_s == {"runner": 3.0, "fork server": 6.0}


def test_an_estimate_after_a_ramp_is_of_its_knee(make: Any) -> None:
    def script(plan: Plan) -> Any:
        slow = make.attempt(phases={"act": 100.0}) if plan.concurrency == 8 else make.attempt()
        took = 400.0 if plan.concurrency == 8 else 4.4
        return make.launcher(
            script={s.trial_id: make.record(s, slow, seconds=took) for s in plan.specs}
        )

    report = ramp(make, script)
    assert report.ramp is not None
    assert report.ramp.knee == 4
    measures = read_measures(
        baseline=None, max_slowdown=None, training="steps=900,prompts=2,samples=2"
    )
    found = measures.of(report).estimate
    assert found is not None
    assert found.concurrency == 4
    assert found.hours.value == pytest.approx(900 * 4.4 / 3600)


def test_a_level_that_faults_fails_the_ramp_and_is_named(make: Any) -> None:
    def script(plan: Plan) -> Any:
        died = make.attempt(reward=None, faults=(make.fault(),))
        bad = plan.specs[0] if plan.concurrency == 4 else None
        return make.launcher(script={bad.trial_id: make.record(bad, died)} if bad else {})

    report = ramp(make, script)
    assert report.verdict is Verdict.FAIL
    assert report.why[0].startswith("at 4: 1 of 4 attempts faulted: 25 %")
    assert report.why[-1].startswith("throughput still grows at 8")
    assert [trial.trial_id for trial in report.failed] == ["fact__001"]
    assert report.ramp is not None
    assert [each.fault_rate.value for each in report.ramp.levels] == [0, 0.25, 0]


def test_a_task_that_is_worth_less_at_the_highest_level_is_named(make: Any) -> None:
    def script(plan: Plan) -> Any:
        spec = plan.specs[0]
        if plan.concurrency < 8:
            return make.launcher()
        return make.launcher(script={spec.trial_id: make.record(spec, make.attempt(reward=0.5))})

    report = ramp(make, script)
    assert report.verdict is Verdict.FAIL
    assert "1 task not worth the same at 2 as at 8: fact 1 at 2 and 0.5 or 1 at 8" in report.why
    assert report.ramp is not None
    assert [each.task for each in report.ramp.differences] == ["fact"]


def test_rewards_of_an_agent_of_ones_own_may_differ(make: Any) -> None:
    def script(plan: Plan) -> Any:
        return make.launcher(
            script={
                spec.trial_id: make.record(spec, make.attempt(reward=spec.sample % 3 / 2))
                for spec in plan.specs
            }
        )

    assert ramp(make, script, agent="my.agents:Mine").verdict is Verdict.PASS


def test_an_interruption_keeps_the_levels_that_ended_and_the_trials_that_did(make: Any) -> None:
    report = asyncio.run(interrupted(make))
    assert report.verdict is Verdict.INTERRUPTED
    assert report.verdict.exit_code == 130
    assert report.why[0] == "at 4: interrupted: 1 of 4 trials had ended"
    assert report.why[-1] == "no knee: 1 level measured, two are needed"
    assert report.ramp is not None
    assert [each.concurrency for each in report.ramp.levels] == [2]
    assert report.trials == 3


async def interrupted(make: Any) -> Report:
    plan = make.plan(samples=4)
    plans = plans_of(plan, LEVELS, None)
    hanging = make.launcher(hang_after=1)

    def launcher_of(level_plan: Plan) -> Any:
        return hanging if level_plan.concurrency == 4 else make.launcher()

    work = asyncio.create_task(
        run_ramp(
            whole(plan, plans), plans, launcher_of, lambda _: make.view(),
            supplies=make.roomy, settle_s=0.0,
        )
    )  # fmt: skip
    await hanging.waiting.wait()
    work.cancel()
    return await work


@pytest.mark.parametrize(
    ("asked", "goes_on"), [({}, True), ({"ramp": "2,4"}, False), ({"chaos": Path("r.toml")}, False)]
)
def test_only_a_run_that_can_go_on_says_how(
    make: Any, capsys: Any, asked: dict[str, Any], goes_on: bool
) -> None:
    report = asyncio.run(interrupted(make))
    place = open_place(make.tmp_path / "r", "token")
    options = Options(
        source=make.tmp_path, agent="replay", env="local", concurrency=1, repeat=None, limit=None,
        max_fault_rate="0.5", seed=0, as_json=False, report_dir=place.root,
        **asked,
    )  # fmt: skip
    finish(options, report if "ramp" in asked else replace(report, ramp=None), place)
    release(place)
    assert ("--resume" in capsys.readouterr().out) is goes_on


def test_nothing_starts_where_the_highest_level_does_not_fit(make: Any) -> None:
    tight = (Supply(resource="open files", free=200, limit="ulimit -n 512", fix="ulimit -n N"),)
    started: list[Any] = []
    report = ramp(make, started.append, supplies=tight)
    assert report.verdict is Verdict.COULD_NOT_RUN
    assert report.why[0].startswith("--ramp: concurrency 8 does not fit, 6 would")
    assert "use --ramp up to 6, or " in report.why[0]
    assert started == []


def test_a_level_whose_launcher_dies_at_once_ends_the_ramp_and_keeps_the_others(make: Any) -> None:
    def script(plan: Plan) -> Any:
        dead = {plan.specs[0].trial_id: SandboxDied("no fork server")}
        return make.launcher(script=dead if plan.concurrency == 4 else {})

    report = ramp(make, script)
    assert report.verdict is Verdict.FAIL
    assert report.why[0] == "at 4: no fork server"
    assert report.trials == 2


def test_a_broken_task_is_said_once_for_all_levels(make: Any) -> None:
    broken = BrokenTask(
        trial_id="bad__000", name="bad", dir=make.tmp_path / "bad", problems=("task.toml: no",)
    )
    report = ramp(make, broken=(broken,))
    assert report.verdict is Verdict.FAIL
    assert report.why[0] == "1 task failed the static checks and did not run: bad"
    assert (report.trials, [t.task for t in report.failed]) == (15, ["bad"])
    assert [each.task for each in report.quarantine] == ["bad"]


def test_the_json_has_a_row_a_level(make: Any) -> None:
    json = to_json(ramp(make))
    assert [row["concurrency"] for row in json["ramp"]["levels"]] == [2, 4, 8]
    assert [row["trials"] for row in json["ramp"]["levels"]] == [2, 4, 8]
    assert (json["ramp"]["knee"], json["ramp"]["grows"]) == (8, True)
    assert {"per_s", "per_hour", "trial_s", "phases", "fault_rate", "cpu_s", "peak_memory_mib"} < (
        set(json["ramp"]["levels"][0])
    )
    assert {row["concurrency"] for row in json["outcomes"]} == {2, 4, 8}


@pytest.mark.parametrize(
    ("rates", "knee", "grows"),
    [
        ((1.5, 3.0, 3.2, 3.1), 64, False),
        ((1.0, 2.0, 4.0, 8.0), 550, True),
        ((3.0, 2.0, 1.0, 0.5), 8, False),
        ((2.0, 2.0, 2.0, 2.0), 8, False),
        ((1.0, 2.0, 3.0, 3.2), 256, False),
    ],
)
def test_the_knee_is_where_throughput_stops_growing(
    rates: tuple[float, ...], knee: int, grows: bool
) -> None:
    levels = [level(at, rate) for at, rate in zip((8, 64, 256, 550), rates, strict=True)]
    found = ramp_of(levels[::-1])
    assert (found.knee, found.grows) == (knee, grows)
    assert str(knee) in knee_line(found)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=6))
def test_the_knee_has_nearly_the_best_throughput_and_no_lower_level_has(rates: list[float]) -> None:
    levels = [level(2**n, rate) for n, rate in enumerate(rates)]
    found = ramp_of(levels)
    if found.knee is None:
        assert max(rates) == 0
        return
    for each in levels:
        assert (each.per_s >= NEARLY * max(rates)) or each.concurrency != found.knee
        assert each.concurrency >= found.knee or each.per_s < NEARLY * max(rates)


def test_levels_without_a_valid_reward_have_no_knee() -> None:
    assert ramp_of([level(8, 0.0), level(64, 0.0)]).knee is None


@pytest.mark.parametrize("text", ["8,64,256", " 8, 64 ,256 "])
def test_levels_are_read(text: str) -> None:
    assert parse_levels(text) == (8, 64, 256)


@pytest.mark.parametrize(
    "text", ["", "8", "8,8", "64,8", "0,8", "-1,8", "8,x", "8,,9", "1.5,2", "8,9999999",
             ",".join(str(n) for n in range(1, 23))],
)  # fmt: skip
def test_what_are_no_levels_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(HarnessError, match="write for example 8,64,256"):
        parse_levels(text)


def test_too_few_trials_for_the_highest_level_are_refused_with_what_would_do(make: Any) -> None:
    with pytest.raises(
        HarnessError, match="8 at once are more than the 6 trials; use --repeat 4, or"
    ):
        plans_of(make.plan(samples=3), LEVELS, repeat=3)


def test_an_environment_without_concurrency_has_no_ramp(make: Any) -> None:
    with pytest.raises(HarnessError, match="one trial at a time"):
        plans_of(make.plan(env="unsafe-process"), LEVELS, None)
