# SPDX-License-Identifier: Apache-2.0
"""Trial directories of Harbor, hand-written, each checked against Harbor's own models first."""

import json
import shutil
from pathlib import Path

import pytest
from harbor.models.trajectories.trajectory import Trajectory
from harbor.models.trial.result import TrialResult

from envkit.audit.read import Item, read
from envkit.audit.types import Owner, Run, Unreadable
from envkit.trial.record import TrialRecord

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def runs(fixtures: Path) -> dict[str, Run]:
    found = read(fixtures / "harbor")
    return {item.id.rsplit("/", 1)[1]: item for item in found if isinstance(item, Run)}


def test_the_fixtures_are_what_harbor_writes(fixtures: Path) -> None:
    for path in fixtures.glob("harbor/jobs/*/*/result.json"):
        TrialResult.model_validate_json(path.read_text("utf-8"))
    for path in fixtures.glob("harbor/**/trajectory.json"):
        Trajectory.model_validate_json(path.read_text("utf-8"))
    for path in fixtures.glob("harbor/**/envkit.json"):
        TrialRecord.from_dict(json.loads(path.read_text("utf-8")))


def test_a_good_trial(runs) -> None:
    run = runs["rent__good"]
    assert (run.task, run.turn_cap, run.turns, run.answered) == ("rent", 5, 2, True)
    assert run.file.endswith("rent__good/agent/trajectory.json")
    assert [(call.tool, call.step, call.failure) for call in run.calls] == [("pdf_search", 1, None)]
    assert run.verdict is not None
    assert (run.verdict.reward, run.verdict.valid) == (1.0, True)


def test_an_exception_makes_its_reward_invalid_and_has_an_owner(runs) -> None:
    run = runs["rent__timeout"]
    assert [(f.code, f.owner, f.reward_valid) for f in run.faults] == [
        ("SandboxLikelyOutOfMemoryError", Owner.ENVIRONMENT, False)
    ]
    assert run.verdict is not None
    assert run.verdict.valid is False
    assert run.calls[0].failure is not None


def test_a_trial_of_steps_keeps_its_exceptions_and_rewards_there(runs) -> None:
    run = runs["rent__steps"]
    assert [(f.code, f.owner) for f in run.faults] == [("VerifierTimeoutError", Owner.VERIFIER)]
    assert run.verdict is not None
    assert (run.verdict.reward, run.verdict.valid) == (0.0, False)
    assert [call.file.split("/")[-3] for call in run.calls] == ["edit", "find"]


def test_a_trial_without_a_result_is_a_run_without_a_verdict(runs) -> None:
    verdict = runs["rent__lost"].verdict
    assert verdict is not None
    assert verdict.problem == "no result: the trial did not finish"


def test_an_unreadable_reward_file_is_named(runs) -> None:
    verdict = runs["rent__noreward"].verdict
    assert verdict is not None
    assert "VerifierOutputParseError" in verdict.problem
    assert "verifier/reward.json: cut off" in verdict.problem


def test_our_own_record_decides(runs) -> None:
    run = runs["rent__ours"]
    assert [(f.code, f.owner) for f in run.faults] == [("ServerDisconnected", Owner.ENVIRONMENT)]
    assert run.verdict is not None
    assert (run.verdict.reward, run.verdict.valid) == (0.0, False)
    assert run.verdict.source.endswith("envkit.json")


def copy_of(fixtures: Path, tmp_path: Path) -> Path:
    trial = tmp_path / "rent__good"
    shutil.copytree(fixtures / "harbor/jobs/monday/rent__good", trial)
    return trial


def items(trial: Path) -> tuple[list[Run], list[Unreadable]]:
    found: list[Item] = list(read(trial.parent))
    runs = [item for item in found if isinstance(item, Run)]
    return runs, [item for item in found if isinstance(item, Unreadable)]


def test_a_cut_result_is_named_and_loses_nothing_else(fixtures: Path, tmp_path: Path) -> None:
    trial = copy_of(fixtures, tmp_path)
    (trial / "result.json").write_text('{"id": ', "utf-8")
    (run,), (lost,) = items(trial)
    assert lost.file == "rent__good/result.json"
    assert len(run.calls) == 1
    assert run.verdict is not None
    assert not run.verdict.graded


def test_a_cut_trajectory_is_named_and_the_reward_stays(fixtures: Path, tmp_path: Path) -> None:
    trial = copy_of(fixtures, tmp_path)
    (trial / "agent/trajectory.json").write_text('{"schema_version": "ATIF-v1.6"', "utf-8")
    (run,), (lost,) = items(trial)
    assert lost.file == "rent__good/agent/trajectory.json"
    assert (run.has_calls, run.verdict and run.verdict.reward) == (False, 1.0)


def test_agent_logs_that_link_out_are_not_read(fixtures: Path, tmp_path: Path) -> None:
    trial = copy_of(fixtures, tmp_path / "root")
    outside = tmp_path / "outside"
    shutil.move(trial / "agent", outside)
    (trial / "agent").symlink_to(outside)
    (run,), (lost,) = items(trial)
    assert "links out" in lost.reason
    assert run.calls == ()


def test_only_the_last_attempt_of_a_trial_was_to_have_a_verdict(
    fixtures: Path, tmp_path: Path
) -> None:
    first = copy_of(fixtures, tmp_path)
    for number in (2, 3):
        shutil.copytree(first, tmp_path / f"rent__good.attempt{number}")
    for trial in (first, tmp_path / "rent__good.attempt2"):
        (trial / "result.json").unlink()
    runs, _ = items(first)
    assert [run.verdict and run.verdict.reward for run in runs] == [None, None, 1.0]
    assert {run.task for run in runs} == {"rent"}


def test_a_trial_directory_with_nothing_to_read_is_unreadable(tmp_path: Path) -> None:
    trial = tmp_path / "rent__empty"
    trial.mkdir()
    (trial / "config.json").write_text("{}", "utf-8")
    (trial / "trial.log").write_text("", "utf-8")
    runs, (lost,) = items(trial)
    assert runs == []
    assert lost.reason == "a trial without a result or trajectory"


@pytest.mark.parametrize(
    ("rewards", "reward"),
    [
        ({"reward": 0.5, "style": 1.0}, 0.5),
        ({"a": 1.0, "b": 0.0}, 0.5),
        ({"reward": True}, None),
        ({"reward": "1"}, None),
        ({}, None),
    ],
)
def test_the_reward_among_several(fixtures: Path, tmp_path: Path, rewards, reward) -> None:
    trial = copy_of(fixtures, tmp_path)
    result = json.loads((trial / "result.json").read_text("utf-8"))
    result["verifier_result"] = {"rewards": rewards}
    (trial / "result.json").write_text(json.dumps(result), "utf-8")
    (run,), _ = items(trial)
    assert run.verdict is not None
    assert run.verdict.reward == reward
