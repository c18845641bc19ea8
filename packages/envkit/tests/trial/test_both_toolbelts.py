# SPDX-License-Identifier: Apache-2.0
"""The same task with the tools of its servers and with a shell alone, from the box to the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harbor.utils.trajectory_validator import TrajectoryValidator
from harbor.viewer import create_app
from starlette.testclient import TestClient

from envkit.agent.hear import ear
from envkit.agent.loaded import voice
from envkit.agent.types import CallRequest
from envkit.preflight.types import TrialSpec
from envkit.show.page import story_html
from envkit.show.source import one, source_of
from envkit.show.story import tell
from envkit.trajectory.types import Kind, Stop, Trajectory

from ..agent.tokens.models import make_model
from ..engines.scripted import start_scripted
from .scripted_model import MODEL, Play, script
from .tiny import launcher, run_trials, spec

pytestmark = pytest.mark.integration

TASK = Path(__file__).parents[4] / "tests/tiny_tasks/east-depot"
ANSWER = "cobalt"


def call(name: str, **arguments: Any) -> CallRequest:
    return CallRequest(name=name, arguments=arguments)


CARD = "/cards/east.txt"
TURNS: dict[str, Sequence[str | Sequence[CallRequest]]] = {
    "mcp": [
        [call("filesystem_server_list_files", path="/cards")],
        [call("filesystem_server_read_text_file", file_path=CARD)],
        [call("code_execution_server_code_exec", code=f"cp /filesystem{CARD} answer.txt")],
        ANSWER,
    ],
    "code": [
        [call("glob", pattern="cards/*.txt")],
        [call("read", filePath=f"/filesystem{CARD}")],
        [call("bash", command=f"cp .{CARD} answer.txt")],
        ANSWER,
    ],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("both") / "model", "qwen3")


@pytest.fixture(scope="module")
def rows(
    boxes: None, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Trajectory, Path]]:
    out = tmp_path_factory.mktemp("trials")
    with ExitStack() as stack:
        specs = list[TrialSpec]()
        for belt, turns in TURNS.items():
            engine = stack.enter_context(start_scripted(script(model, Play(turns=turns))))
            args = {"engine": engine.url, "tokenizer": str(model), "toolbelt": belt}
            specs.append(replace(spec(TASK, out, f"east-depot.{belt}", MODEL), agent_args=args))
        ran = run_trials(launcher(out), specs)
    source = source_of(out)
    assert source is not None
    return {
        belt: (one(source, f"east-depot.{belt}"), ran[f"east-depot.{belt}"].trial_dir)
        for belt in TURNS
    }


@pytest.mark.parametrize("belt", TURNS)
def test_the_task_is_done_with_either_toolbelt(
    rows: dict[str, tuple[Trajectory, Path]], belt: str
) -> None:
    row, _ = rows[belt]
    assert (row.outcome.reward, row.outcome.reward_valid) == (1.0, True)
    assert (row.episode.stop, row.episode.final_answer) == (Stop.FINAL, ANSWER)
    assert [made.ok for made in row.episode.calls] == [True] * 3
    assert row.identity.harness == f"envkit {belt}"


def test_the_two_differ_in_tools_and_in_nothing_else_of_the_harness(
    rows: dict[str, tuple[Trajectory, Path]], model: Path
) -> None:
    decode = voice(model).template.decode
    prompts = dict[str, str]()
    for belt, (row, _) in rows.items():
        stream = row.episode.stream
        (first,) = (each for each in stream.segments if each.kind is Kind.PROMPT)
        prompts[belt] = decode(stream.token_ids[: first.stop].tolist())
    assert "filesystem_server_" in prompts["mcp"]
    assert "filesystem_server_" not in prompts["code"]
    for tail in ("Which word is on the card of the east depot?",):
        assert all(tail in text for text in prompts.values())
    one_, other = (row.identity for row, _ in rows.values())
    assert one_.harness_version == other.harness_version
    assert one_.template_digest == other.template_digest


@pytest.mark.parametrize("belt", TURNS)
def test_harbor_takes_its_trajectory_and_has_every_call_with_its_result(
    rows: dict[str, tuple[Trajectory, Path]], belt: str
) -> None:
    row, directory = rows[belt]
    file = directory / "agent/trajectory.json"
    validator = TrajectoryValidator()
    assert validator.validate(file), validator.get_errors()
    steps = json.loads(file.read_text())["steps"]
    calls = [each for step in steps for each in step.get("tool_calls") or ()]
    assert [each["function_name"] for each in calls] == [made.name for made in row.episode.calls]
    seen = [step["observation"]["results"] for step in steps if "observation" in step]
    results: list[dict[str, Any]] = [each for found in seen for each in found]
    assert [each["source_call_id"] for each in results] == [each["tool_call_id"] for each in calls]
    assert ANSWER in results[1]["content"]


@pytest.mark.parametrize("belt", TURNS)
def test_harbors_viewer_opens_it(rows: dict[str, tuple[Trajectory, Path]], belt: str) -> None:
    row, directory = rows[belt]
    trial = f"/api/jobs/{directory.parent.name}/trials/{directory.name}"
    with TestClient(create_app(directory.parents[1])) as viewer:
        told = viewer.get(trial).json()
        steps = viewer.get(f"{trial}/trajectory").json()["steps"]
    assert told["verifier_result"]["rewards"] == {"reward": 1.0}
    said = [step["message"] for step in steps if step["source"] == "agent"]
    assert len(said) == row.episode.used.turns
    assert said[-1] == ANSWER


@pytest.mark.parametrize("belt", TURNS)
def test_envkit_shows_it_turn_by_turn(
    rows: dict[str, tuple[Trajectory, Path]], belt: str, model: Path
) -> None:
    story = tell(rows[belt][0], ear(model))
    assert [len(turn.calls) for turn in story.turns] == [1, 1, 1, 0]
    assert ANSWER in (story.turns[1].calls[0].result or "")
    assert story.turns[-1].content == ANSWER
    assert f"<h1>east-depot.{belt} " in story_html(story)
