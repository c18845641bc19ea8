# SPDX-License-Identifier: Apache-2.0
"""Runs of a model from the command line to the store."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envkit.agent.tokens import load_template
from envkit.trajectory.store import Store
from envkit.trajectory.types import Kind, Stop

from ..engines.scripted import Order, Scripted
from ..trial.tiny import make_task
from .small import ANSWER, DONE, ENVKIT, TIMEOUT_S, ended, envkit, model_that_says

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def needs_boxes(boxes: None) -> None: ...


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[tuple[Path, Scripted]]:
    make_task(tmp_path / "tasks")
    with model_that_says(tmp_path) as (model, serving):
        yield model, serving


def words(tmp_path: Path, engine: tuple[Path, Scripted], *more: object) -> list[object]:
    model, serving = engine
    asked = ["run", tmp_path / "tasks", "--engine", serving.url, "--tokenizer", model]
    return [*asked, "--out", tmp_path / "out", *more]


def test_every_trial_is_a_row_with_what_the_engine_sampled(
    tmp_path: Path, engine: tuple[Path, Scripted]
) -> None:
    events = tmp_path / "events.jsonl"
    more = ("--samples", 3, "--events", events, "--json", "--temperature", 1.0, "--turns-cap", 7)
    done = envkit(*words(tmp_path, engine, *more))
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told == json.loads((tmp_path / "out/report.json").read_text())
    assert (told["trials"], told["rewards"]["n"], told["rewards"]["mean"]) == (3, 3, 1.0)
    mine = told["trajectories"]
    assert (mine["trajectories"], mine["stops"], mine["tool_calls_ok"]) == (3, {"final": 3}, 3)
    store = Store(tmp_path / "out/trajectories")
    names = [f"ordinary__00{n}" for n in range(3)]
    assert sorted(store.ids) == sorted(ended(events)) == names
    sampled = {tuple(turn["body"]["token_ids"]) for turn in engine[1].seen() if "body" in turn}
    for row in store:
        assert (row.identity.group_id, row.identity.task) == ("ordinary", "ordinary")
        assert len(row.identity.task_digest) == 64
        assert (row.outcome.reward, row.outcome.loss_live) == (1.0, True)
        assert row.episode.limits.turns == 7
        assert row.episode.limits.own_s == 120.0  # of the task
        ids = row.episode.stream.token_ids.tolist()
        models = [each for each in row.episode.stream.segments if each.kind is Kind.MODEL]
        assert all(tuple(ids[: each.start]) in sampled for each in models)
        copy = tmp_path / "out/tokenizers" / row.identity.tokenizer_digest
        assert load_template(copy).decode(ids) == load_template(engine[0]).decode(ids)
        assert load_template(copy).template_digest == row.identity.template_digest


def test_a_trial_that_its_engine_failed_is_a_row_with_what_it_had_and_no_valid_reward(
    tmp_path: Path, engine: tuple[Path, Scripted]
) -> None:
    model, serving = engine
    serving.order(Order(fault="no ids", turn=1, times=0))
    args = words(tmp_path, (model, serving), "--json", "--samples", 2)
    done = envkit(*args)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert "no trial earned a valid reward" in told["why"]
    assert told["trajectories"]["stops"] == {"fault": 2}
    rows = list(Store(tmp_path / "out/trajectories"))
    assert [row.outcome.reward_valid for row in rows] == [False, False]
    assert {row.episode.stop for row in rows} == {Stop.FAULT}
    assert {row.outcome.fault.code for row in rows if row.outcome.fault} == {"NoTokenIds"}
    assert all(len(row.episode.stream.token_ids) for row in rows)


def test_preflight_takes_the_same_agent_and_keeps_its_gate(
    tmp_path: Path, engine: tuple[Path, Scripted]
) -> None:
    model, serving = engine
    asked = ("preflight", tmp_path / "tasks", "--agent", "model", "--engine", serving.url)
    more = ("--concurrency", 2, "--report", tmp_path / "out", "--json")
    done = envkit(*asked, "--tokenizer", model, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["rewards"]["mean"], told["peak_live"]) == ("PASS", 1.0, 2)
    assert told["agent"] == "model"
    assert {row["tool"] for row in told["tools"]} == {DONE.name}


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "no engine": ({"--engine": None}, "the agent model needs an engine: --engine URL"),
    "no place": ({"--out": None}, "name the directory of the run with --out DIR"),
    "no tokenizer": ({"--tokenizer": None}, "name the directory of the model with --tokenizer"),
    "strange engine": ({"--engine": "tiny"}, "write http://HOST:PORT, or vllm: and a directory"),
    "no model": ({"--engine": "vllm:/nowhere"}, "holds no config.json"),
    "no template": (
        {"--tokenizer": "/nowhere"},
        "No such file or directory; name the directory with the model's tokenizer.json",
    ),
    "strange toolbelt": ({"--toolbelt": "hammer"}, "there is no 'hammer'; there are mcp, code"),
    "strange argument": ({"--agent-arg": "voice=low"}, "there is no 'voice'"),
    "argument twice": ({"--agent-arg": "toolbelt=code"}, "has options of its own"),
    "silent engine": ({"--engine": "http://127.0.0.1:9"}, "127.0.0.1:9"),
    "no place for events": ({"--events": "/nowhere/events"}, "its directory is not there"),
    "strange model": ({"--model": "gpt"}, "model 'gpt' is not served"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_run_is_one_line_and_leaves_no_run(
    tmp_path: Path, engine: tuple[Path, Scripted], name: str
) -> None:
    model, serving = engine
    changes, line = REFUSALS[name]
    asked = {
        "--engine": serving.url,
        "--tokenizer": str(model),
        "--out": str(tmp_path / "out"),
        **changes,
    }
    options = [word for pair in asked.items() if pair[1] is not None for word in pair]
    done = envkit("run", tmp_path / "tasks", *options)
    assert (done.returncode, done.stdout) == (2, "")
    (said,) = done.stderr.strip().splitlines()
    assert line in said
    assert not (tmp_path / "out").exists()


def test_nothing_of_a_run_is_written_over(tmp_path: Path, engine: tuple[Path, Scripted]) -> None:
    assert envkit(*words(tmp_path, engine)).returncode == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    done = envkit(*words(tmp_path, engine))
    assert done.returncode == 2
    assert "holds a run; go on with it by --resume, or name another" in done.stderr
    done = envkit("preflight", "--resume", tmp_path / "out")
    assert done.returncode == 2
    assert "is a run of envkit run, not of envkit preflight" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_an_interrupted_run_stores_what_had_ended_and_says_how_it_goes_on(
    tmp_path: Path, engine: tuple[Path, Scripted]
) -> None:
    events = tmp_path / "events.jsonl"
    more = ("--samples", 6, "--concurrency", 1, "--events", events)
    command = [*ENVKIT, *map(str, words(tmp_path, engine, *more))]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "[2/6]" in line:
                break
        os.kill(process.pid, 15)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert out.splitlines()[-1] == f"resume envkit run --resume {tmp_path / 'out'}"
    stored = Store(tmp_path / "out/trajectories").ids
    assert sorted(stored) == sorted(ended(events))
    assert len(stored) >= 2
    done = envkit("run", "--resume", tmp_path / "out", "--events", events, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["trajectories"]["trajectories"] == 6
    assert len(ended(events)) == len(set(ended(events))) == 6


def test_an_answer_by_a_call_and_other_tools_are_asked_for_by_name(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    final = DONE.__class__(name="final_answer", arguments={"answer": ANSWER})
    with model_that_says(tmp_path, [DONE, final]) as engine:
        more = ("--final-answer-tool", "--todo-tool", "--evaluation")
        done = envkit(*words(tmp_path, engine, *more))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = Store(tmp_path / "out/trajectories")
    assert row.identity.harness == "envkit mcp+final_answer+todo_write"
    assert (row.outcome.reward, row.episode.evaluation) == (1.0, True)
