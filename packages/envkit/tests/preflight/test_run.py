# SPDX-License-Identifier: Apache-2.0
"""The whole preflight over a launcher that follows a script."""

import asyncio
from dataclasses import replace
from typing import Any

from envkit.deadline import DeadlineExceeded
from envkit.fault import HarnessError, Owner, SandboxUnavailable
from envkit.preflight.fit import DEFAULT_COSTS, crowding
from envkit.preflight.host import Supply, cores
from envkit.preflight.report_json import to_json
from envkit.preflight.run import run
from envkit.preflight.types import BrokenTask, Leftover, Report, Verdict


def go(make: Any, plan: Any, launcher: Any, supplies: Any = None) -> Report:
    work = run(plan, launcher, make.view(), supplies=supplies or make.roomy, settle_s=0.3)
    return asyncio.run(work)


def test_a_clean_run_passes_with_everything_measured(make: Any) -> None:
    plan = make.plan()
    report = go(make, plan, make.launcher())
    assert report.verdict is Verdict.PASS
    assert (report.trials, report.attempts, report.peak_live) == (6, 6, 6)
    assert report.rewards.mean == 1.0
    assert report.loop_stall_ms.max == 40.0
    assert report.peak_memory_mib == 640.0
    assert report.cpu_s == {"trial": 3.0, "boxes": 1.5}
    assert list(report.phases) == ["start", "gateway", "setup", "act", "collect", "grade", "stop"]
    assert report.failed == ()


def test_retries_faults_and_rewards_are_counted_apart(make: Any) -> None:
    plan = make.plan()
    died = make.attempt(reward=None, faults=(make.fault(),))
    launcher = make.launcher(
        script={
            "fact__000": make.record(plan.specs[0], died, make.attempt(2)),
            "fact__001": make.record(plan.specs[2], died, replace(died, number=2)),
        }
    )
    report = go(make, plan, launcher)
    (row,) = report.faults
    assert (row.code, row.owner, row.count, row.retried) == ("SandboxDied", "sandbox", 3, 2)
    assert row.example_trial == "fact__000"
    assert (report.trials, report.attempts) == (6, 8)
    assert report.fault_rate.value == 3 / 8
    assert (report.rewards.n, report.rewards.mean) == (5, 1.0)
    assert report.rewards.all_invalid_0 == 5 / 6
    assert [trial.trial_id for trial in report.failed] == ["fact__001", "fact__000"]
    assert report.failed[1].trial_dir.name == "fact__000"  # where it faulted, not where it earned
    assert report.verdict is Verdict.FAIL


def test_one_class_of_two_owners_is_two_rows(make: Any) -> None:
    plan = make.plan(("fact",), 3)
    slow = make.fault(DeadlineExceeded("exec", 60.0))
    faults = [slow, replace(slow, owner=Owner.VERIFIER), slow]
    script = {
        spec.trial_id: make.record(spec, make.attempt(reward=None, faults=(fault,)))
        for spec, fault in zip(plan.specs, faults, strict=True)
    }
    report = go(make, plan, make.launcher(script=script))
    assert [(row.code, row.owner, row.count) for row in report.faults] == [
        ("DeadlineExceeded:exec", "sandbox", 2),
        ("DeadlineExceeded:exec", "verifier", 1),
    ]
    json = to_json(report)["faults"]
    assert {name: row["count"] for name, row in json.items()} == {
        "DeadlineExceeded:exec": 2,
        "DeadlineExceeded:exec (verifier)": 1,
    }


def test_a_failed_trial_says_how_to_see_it_again(make: Any) -> None:
    plan = make.plan(("a task",), 1, seed=7)
    died = make.attempt(reward=None, faults=(make.fault(),))
    launcher = make.launcher(script={"a task__000": make.record(plan.specs[0], died)})
    (trial,) = go(make, plan, launcher).failed
    assert trial.reproduce == (
        f"envkit preflight '{make.tmp_path}/tasks/a task' --agent replay --env local "
        "--concurrency 1 --repeat 1 --seed 7"
    )
    assert trial.why == "sandbox fault SandboxDied in act: box 3 exited with 137"


def test_a_wrong_reward_names_the_criteria_that_were_missed(make: Any) -> None:
    plan = make.plan(("fact",), 1)
    half = make.attempt(reward=0.5, rewards={"reward": 0.5, "total": 1.0, "source": 0.0})
    launcher = make.launcher(script={"fact__000": make.record(plan.specs[0], half)})
    (trial,) = go(make, plan, launcher).failed
    assert trial.why == "earned 0.5 (source 0)"


def test_a_trial_the_launcher_never_reported_is_a_harness_fault(make: Any) -> None:
    plan = make.plan()
    report = go(make, plan, make.launcher(script={"workbook__001": None}))
    assert report.trials == 6
    (row,) = report.faults
    assert (row.owner, row.example_trial) == ("harness", "workbook__001")
    assert report.verdict is Verdict.FAIL


def test_a_launcher_that_dies_midway_keeps_what_had_ended(make: Any) -> None:
    plan = make.plan()
    report = go(make, plan, make.launcher(script={"fact__001": HarnessError("fork server gone")}))
    assert report.verdict is Verdict.FAIL
    assert report.why[0] == "the launcher died: fork server gone"
    assert report.rewards.n == 2
    assert report.trials == 6
    assert report.faults[0].count == 4


def test_a_launcher_that_dies_at_once_could_not_run(make: Any) -> None:
    plan = make.plan()
    error = SandboxUnavailable("no user namespaces; run: sysctl -w user.max_user_namespaces=9999")
    report = go(make, plan, make.launcher(script={plan.specs[0].trial_id: error}))
    assert report.verdict is Verdict.COULD_NOT_RUN
    assert report.why == (str(error),)


def test_nothing_starts_where_the_trials_do_not_fit(make: Any) -> None:
    plan = make.plan(("fact",), 64)
    tight = (Supply(resource="open files", free=400, limit="ulimit -n 512", fix="ulimit -n N"),)
    launcher = make.launcher()
    report = go(make, plan, launcher, tight)
    assert report.verdict is Verdict.COULD_NOT_RUN
    assert report.why == (
        "concurrency 64 does not fit, 22 would; open files binds: 400 free (ulimit -n 512), "
        "128 + 12 a trial; use --concurrency 22, or ulimit -n N",
    )
    assert launcher.closed is False


def test_a_run_whose_trials_all_work_at_once_on_few_cores_is_told_and_not_refused(
    make: Any,
) -> None:
    wanted = 1 + int(cores() * DEFAULT_COSTS.trials_a_core)
    told: list[list[str]] = []
    for concurrency, turns in ((1, 0), (wanted, 0), (wanted, None)):
        view = make.view()
        plan = make.plan(("fact",), concurrency, turns=turns)
        work = run(plan, make.launcher(), view, supplies=make.roomy, settle_s=0.0)
        assert asyncio.run(work).verdict is Verdict.PASS
        told.append([line for line in view.lines if "cores" in line])
    assert told == [[], [crowding(wanted, cores())], []]


def test_no_sound_task_could_not_run_and_every_problem_is_named(make: Any) -> None:
    broken = BrokenTask(
        trial_id="bad__000",
        name="bad",
        dir=make.tmp_path,
        problems=("task.toml: broken", "tests/: no"),
    )
    report = go(make, make.plan((), broken=(broken,), concurrency=6), make.launcher())
    assert report.verdict is Verdict.COULD_NOT_RUN
    assert report.why == ("bad: task.toml: broken", "bad: tests/: no")


def test_a_broken_task_costs_no_other_task_its_trials(make: Any) -> None:
    broken = BrokenTask(
        trial_id="bad__000", name="bad", dir=make.tmp_path / "bad", problems=("task.toml: broken",)
    )
    report = go(make, make.plan(broken=(broken,)), make.launcher())
    assert report.verdict is Verdict.FAIL
    assert (report.trials, report.rewards.n) == (7, 6)
    assert [(row.owner, row.count) for row in report.faults] == [("task", 1)]
    (trial,) = report.failed
    assert trial.reproduce == f"envkit lint {make.tmp_path}/bad"


def test_what_was_there_before_is_no_leak_of_this_run(make: Any) -> None:
    old = Leftover(kind="process", what="1 bwrap")
    new = Leftover(kind="mount", what="/run/envkit/x")
    launcher = make.launcher(leftover=[(old,), (old, new)])
    report = go(make, make.plan(("fact",), 1), launcher)
    assert report.leaks == (new,)
    assert report.verdict is Verdict.FAIL


def test_what_the_kernel_takes_away_a_moment_later_is_no_leak(make: Any) -> None:
    fading = Leftover(kind="mount", what="/run/envkit/x")
    launcher = make.launcher(leftover=[(), (fading,), ()])
    assert go(make, make.plan(("fact",), 1), launcher).leaks == ()


async def interrupted(make: Any, plan: Any, launcher: Any) -> Report:
    work = asyncio.create_task(run(plan, launcher, make.view(), supplies=make.roomy))
    await launcher.waiting.wait()
    work.cancel()
    return await work


def test_an_interruption_gives_a_partial_report_and_stops_the_launcher(make: Any) -> None:
    plan = make.plan()
    launcher = make.launcher(hang_after=4)
    report = asyncio.run(interrupted(make, plan, launcher))
    assert report.verdict is Verdict.INTERRUPTED
    assert report.verdict.exit_code == 130
    assert report.why == ("interrupted: 4 of 6 trials had ended",)
    assert (report.trials, report.rewards.n) == (4, 4)
    assert report.faults == ()
    assert launcher.closed


def test_an_interruption_while_leaks_fade_is_a_report_as_well(make: Any) -> None:
    counted = asyncio.Event()

    class Leaking(make.launcher):  # type: ignore[misc]
        def leftovers(self) -> list[Leftover]:
            if not self.closed:
                return []
            counted.set()
            return [Leftover(kind="mount", what="/run/envkit/x")]

    async def cut_off() -> Report:
        launcher = Leaking()
        work = asyncio.create_task(
            run(make.plan(), launcher, make.view(), supplies=make.roomy, settle_s=600.0)
        )
        await counted.wait()
        work.cancel()
        return await work

    report = asyncio.run(cut_off())
    assert report.verdict is Verdict.INTERRUPTED
    assert (report.trials, len(report.leaks)) == (6, 1)


def test_an_interruption_before_any_trial_ended_is_still_a_report(make: Any) -> None:
    report = asyncio.run(interrupted(make, make.plan(), make.launcher(hang_after=0)))
    assert report.why == ("interrupted: 0 of 6 trials had ended",)
    assert to_json(report)["rewards"]["mean"] is None


def test_the_json_has_the_published_keys(make: Any) -> None:
    plan = make.plan()
    died = make.attempt(reward=None, faults=(make.fault(),))
    launcher = make.launcher(script={"fact__000": make.record(plan.specs[0], died)})
    json = to_json(go(make, plan, launcher))
    assert {
        "schema", "verdict", "why", "trials", "attempts", "peak_live", "rewards", "faults",
        "fault_rate", "phases", "cpu_s", "peak_memory_mib", "loop_stall_ms", "leaks",
    } <= set(json)  # fmt: skip
    assert json["schema"] == "envkit.preflight/1"
    assert set(json["rewards"]) == {"mean", "n", "low", "high", "all_invalid_0", "all_invalid_1"}
    assert json["rewards_interval"] == "Wilson"
    assert set(json["faults"]["SandboxDied"]) == {"owner", "count", "retried", "example"}
    assert set(json["fault_rate"]) == {"value", "low", "high"}
    assert set(json["phases"]["act"]) == {"n", "p50", "p95", "p99", "max"}
    assert json["loop_stall_ms"]["max"] == json["loop_stall_ms"]["p99"] == 40.0
    assert json["leaks"] == dict.fromkeys(
        ("processes", "mounts", "cgroups", "files", "uncounted"), 0
    )
