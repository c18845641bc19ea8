# SPDX-License-Identifier: Apache-2.0
"""Which tasks must not be trained on, and the list as trainers read it."""

import asyncio
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.fault import HarnessError, NotIsolated, OutOfMemory
from envkit.preflight.quarantine import quarantine, read, to_bytes
from envkit.preflight.report import could_not_run
from envkit.preflight.run import run
from envkit.preflight.types import BrokenTask, Quarantined, Reason, Report, Verdict
from envkit.trial.record import Grade


def found(make: Any, *records: Any, **changes: Any) -> dict[str, list[str]]:
    plan = make.plan(**changes)
    return {
        each.task: [reason.code for reason in each.reasons] for each in quarantine(plan, records)
    }


def fact(make: Any, sample: int, *attempts: Any, **changes: Any) -> Any:
    spec = replace(make.plan(("fact",), 1).specs[0], sample=sample, trial_id=f"fact__{sample:03d}")
    return make.record(spec, *attempts, **changes)


def test_a_sound_task_is_not_listed(make: Any) -> None:
    assert found(make, *(fact(make, n) for n in range(6))) == {}


def test_an_oracle_that_does_not_earn_all_lists_its_task(make: Any) -> None:
    plan, half = make.plan(), make.attempt(reward=0.5)
    (task,) = quarantine(plan, [fact(make, 0, half), fact(make, 1)])
    (reason,) = task.reasons
    assert reason.code == "wrong_reward"
    assert reason.message == "replay must earn 1 and earned 0.5 in 1 of 2 trials"
    assert reason.trials == ("fact__000",)


def test_a_task_that_pays_for_doing_nothing_is_listed(make: Any) -> None:
    assert found(make, fact(make, 0, agent="nop")) == {"fact": ["wrong_reward"]}


def test_any_reward_of_an_agent_of_ones_own_is_right(make: Any) -> None:
    own = fact(make, 0, make.attempt(reward=0.3), agent="my.agents:Mine")
    assert found(make, own, agent="my.agents:Mine") == {}


def test_a_reward_beyond_one_lists_its_task(make: Any) -> None:
    own = fact(make, 0, make.attempt(reward=3.0), agent="my.agents:Mine")
    assert found(make, own, agent="my.agents:Mine") == {"fact": ["reward_range"]}


def test_one_box_that_died_among_many_says_nothing_about_its_task(make: Any) -> None:
    died = make.attempt(reward=None, faults=(make.fault(),))
    records = [fact(make, n) for n in range(68)]
    assert found(make, fact(make, 68, died, make.attempt(2)), *records) == {}


def test_faults_that_are_shown_to_be_above_the_rate_list_their_task(make: Any) -> None:
    died = make.attempt(reward=None, faults=(make.fault(),))
    records = [fact(make, 0, died), fact(make, 1, died), fact(make, 2)]
    (task,) = quarantine(make.plan(), records)
    (reason,) = task.reasons
    assert reason.message == "2 of 3 attempts faulted, 0.5 % allowed: sandbox SandboxDied"
    assert reason.trials == ("fact__000", "fact__001")
    assert found(make, *records, max_fault_rate=0.3) == {}


def test_what_the_model_caused_is_not_held_against_its_task(make: Any) -> None:
    own = make.attempt(reward=0.0, faults=(make.fault(OutOfMemory("512 MiB")),))
    records = [fact(make, n, own, agent="my.agents:Mine") for n in range(4)]
    assert found(make, *records, agent="my.agents:Mine") == {}


def grades(first: float, second: float, **criteria: tuple[float, float]) -> tuple[Grade, Grade]:
    named = {"reward": (first, second), **criteria}
    one, other = ({name: pair[n] for name, pair in named.items()} for n in (0, 1))
    return Grade(reward=first, rewards=one), Grade(reward=second, rewards=other)


def test_a_verifier_that_pays_the_same_files_differently_lists_its_task(make: Any) -> None:
    twice = make.attempt(grades=grades(1.0, 0.5, total=(1.0, 0.0), source=(1.0, 1.0)))
    same = make.attempt(2, grades=grades(1.0, 1.0))
    (task,) = quarantine(make.plan(), [fact(make, 0, twice), fact(make, 1, same)])
    (reason,) = task.reasons
    assert (reason.code, reason.trials) == ("flaky_verifier", ("fact__000",))
    assert reason.message == (
        "the same files were paid reward 1 then 0.5, total 1 then 0 in 1 of 2 trials"
    )


def test_a_criterion_that_flips_is_enough(make: Any) -> None:
    twice = make.attempt(grades=grades(1.0, 1.0, total=(1.0, 0.0)))
    (task,) = quarantine(make.plan(), [fact(make, 0, twice)])
    assert "total 1 then 0 in 1 of 1 trial" in task.reasons[0].message


def test_a_second_grading_that_failed_is_not_another_reward(make: Any) -> None:
    first, _ = grades(1.0, 1.0)
    failed = make.attempt(grades=(first, Grade(reward=None, fault=make.fault())))
    assert found(make, fact(make, 0, failed)) == {}


def test_a_task_whose_box_showed_another_trials_files_is_listed(make: Any) -> None:
    seen = make.attempt(faults=(make.fault(NotIsolated("/filesystem/x")),), reward_valid=False)
    assert "interference" in found(make, fact(make, 0, seen))["fact"]


def test_a_task_that_failed_its_static_checks_is_listed_once_with_what_to_do(make: Any) -> None:
    broken = BrokenTask(
        trial_id="bad__000", name="bad", dir=make.tmp_path / "bad", problems=("task.toml: no",)
    )
    plan = make.plan(broken=(broken,))
    report = asyncio.run(run(plan, make.launcher(), make.view(), supplies=make.roomy))
    assert report.quarantine == (
        Quarantined(
            task="bad", reasons=(Reason(code="static_checks", message="task.toml: no", trials=()),)
        ),
    )


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
LISTS = st.lists(
    st.builds(
        Quarantined,
        task=TEXT,
        reasons=st.lists(
            st.builds(
                Reason, code=TEXT, message=TEXT, trials=st.lists(TEXT, max_size=3).map(tuple)
            ),
            max_size=3,
        ).map(tuple),
    ),
    max_size=3,
).map(tuple)


@settings(deadline=None)
@given(LISTS)
def test_a_trainer_reads_what_was_written(tasks: tuple[Quarantined, ...]) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(to_bytes(report_of(tasks)))
        assert read(Path(file.name)) == tasks


def report_of(tasks: tuple[Quarantined, ...]) -> Report:
    return replace(could_not_run(["x"]), quarantine=tasks)


def test_the_order_of_the_records_does_not_change_the_list(make: Any) -> None:
    plan, half = make.plan(), make.attempt(reward=0.5)
    records = [fact(make, n, half) for n in range(4)]
    assert quarantine(plan, records) == quarantine(plan, records[::-1])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"schema": "envkit.quarantine/2", "tasks": []}', "this version reads 'envkit.quaran"),
        ("{}", "schema is None"),
        ("[]", "is no quarantine list"),
        ("tasks", "is no quarantine list"),
        ('{"schema": "envkit.quarantine/1"}', "is no quarantine list"),
        ('{"schema": "envkit.quarantine/1", "tasks": [{"task": "x"}]}', "is no quarantine list"),
    ],
)
def test_another_schema_and_what_is_no_list_are_refused(
    tmp_path: Path, text: str, line: str
) -> None:
    file = tmp_path / "q.json"
    file.write_text(text)
    with pytest.raises(HarnessError, match=line):
        read(file)


def test_a_list_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"No such file or directory; name a quarantine\.json"):
        read(tmp_path / "q.json")


def test_the_published_form(make: Any) -> None:
    plan, half = make.plan(("fact",), 1), make.attempt(reward=0.5)
    launcher = make.launcher(script={"fact__000": make.record(plan.specs[0], half)})
    report = asyncio.run(run(plan, launcher, make.view(), supplies=make.roomy))
    assert json.loads(to_bytes(report)) == {
        "schema": "envkit.quarantine/1",
        "agent": "replay",
        "complete": True,
        "tasks": [
            {
                "task": "fact",
                "reasons": [
                    {
                        "code": "wrong_reward",
                        "message": "replay must earn 1 and earned 0.5 in 1 of 1 trial",
                        "trials": ["fact__000"],
                    }
                ],
            }
        ],
    }


def test_a_run_that_did_not_look_at_every_task_says_so(make: Any) -> None:
    launcher = make.launcher()
    report = asyncio.run(run(make.plan(), launcher, make.view(), supplies=make.roomy))
    assert json.loads(to_bytes(report))["complete"] is True
    again = replace(report, plan=make.plan(rerun_of=make.tmp_path / "earlier"))
    assert json.loads(to_bytes(again))["complete"] is False
    stopped = replace(report, verdict=Verdict.INTERRUPTED)
    assert json.loads(to_bytes(stopped))["complete"] is False
