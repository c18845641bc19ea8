# SPDX-License-Identifier: Apache-2.0
"""From directories to trials."""

import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.fault import HarnessError, TaskError
from envkit.preflight.names import slugs_of, trial_id
from envkit.preflight.plan import Request, make_plan, spread

TASK_TOML = """
artifacts = ["/logs/artifacts"]
[task]
name = "test/{name}"

[verifier]
timeout_sec = 60
environment_mode = "separate"

[verifier.environment]
network_mode = "no-network"

[agent]
timeout_sec = 60

[environment]
network_mode = "no-network"
"""


def make_task(root: Path, name: str, *, without: str = "") -> Path:
    files = {
        "task.toml": TASK_TOML.format(name=name),
        "instruction.md": "Answer.",
        "environment/Dockerfile": "FROM scratch\n",
        "solution/solve.sh": "#!/bin/sh\n",
        "solution/calls.jsonl": '{"final_answer": "x"}\n',
        "tests/test.sh": "#!/bin/sh\n",
    }
    for path, text in files.items():
        if path != without:
            target = root / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(0o755)
    return root / name


def request(source: Path, **changes: Any) -> Request:
    return Request(source=source, out_dir=source.parent / "out", run_token="t", **changes)


@given(st.integers(1, 9), st.integers(1, 70), st.none() | st.integers(1, 5))
def test_the_concurrency_is_filled_once_and_every_task_runs(
    tasks: int, concurrency: int, repeat: int | None
) -> None:
    pairs = spread(range(tasks), concurrency, repeat)
    samples = [sum(task == t for task, _ in pairs) for t in range(tasks)]
    if repeat:
        assert samples == [repeat] * tasks
    else:
        assert len(pairs) == max(concurrency, tasks)
        assert max(samples) - min(samples) <= 1
    assert len(set(pairs)) == len(pairs)
    assert pairs[:tasks] == [(task, 0) for task in range(tasks)]


def test_no_task_gives_no_trial() -> None:
    assert spread([], 64, None) == []


def test_the_same_request_gives_the_same_trials(tmp_path: Path) -> None:
    source = tmp_path / "tasks"
    for name in ("b", "a", "c"):
        make_task(source, name)
    plan = make_plan(request(source, concurrency=7))
    assert plan == make_plan(request(source, concurrency=7))
    assert [spec.trial_id for spec in plan.specs] == [
        "a__000", "b__000", "c__000", "a__001", "b__001", "c__001", "a__002",
    ]  # fmt: skip


def test_limit_takes_the_first_tasks_by_name(tmp_path: Path) -> None:
    source = tmp_path / "tasks"
    for name in ("b", "a", "c"):
        make_task(source, name)
    plan = make_plan(request(source, concurrency=6, limit=2, repeat=1))
    assert [spec.trial_id for spec in plan.specs] == ["a__000", "b__000"]


def test_a_single_task_directory_is_a_plan_too(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(make_task(tmp_path, "alone"))
    plan = make_plan(request(Path(), concurrency=2))
    assert [spec.trial_id for spec in plan.specs] == ["alone__000", "alone__001"]


@pytest.mark.parametrize("missing", ["tests/test.sh", "instruction.md", "task.toml"])
def test_a_broken_task_is_listed_and_the_others_run(tmp_path: Path, missing: str) -> None:
    source = tmp_path / "tasks"
    make_task(source, "good")
    make_task(source, "bad", without=missing)
    plan = make_plan(request(source, concurrency=2))
    assert {spec.task_dir.name for spec in plan.specs} == {"good"}
    (broken,) = plan.broken
    assert broken.name == "bad"
    assert missing.removesuffix("/test.sh") in " ".join(broken.problems)


def test_a_task_file_that_cannot_even_be_decoded_breaks_only_its_task(tmp_path: Path) -> None:
    source = tmp_path / "tasks"
    make_task(source, "good")
    (make_task(source, "bad") / "task.toml").write_bytes(b"\xff\xfe\x00broken")
    plan = make_plan(request(source, concurrency=2))
    assert [task.name for task in plan.broken] == ["bad"]
    assert len(plan.specs) == 2


def test_replay_needs_recorded_calls_and_says_what_else_would_run(tmp_path: Path) -> None:
    source = tmp_path / "tasks"
    make_task(source, "unrecorded", without="solution/calls.jsonl")
    (broken,) = make_plan(request(source)).broken
    assert "--agent oracle" in broken.problems[0]
    assert make_plan(request(source, agent="oracle")).broken == ()


@pytest.mark.parametrize("name", ["nothing-here", "empty"])
def test_a_directory_without_tasks_is_one_clear_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match=name):
        make_plan(request(tmp_path / name))


@pytest.mark.parametrize(
    ("option", "value"), [("agent", "bogus"), ("env", "docker2"), ("agent", "a:b:c"), ("env", ":")]
)
def test_an_unknown_agent_or_environment_is_refused(
    tmp_path: Path, option: str, value: str
) -> None:
    with pytest.raises(HarnessError, match=r"use .* or module:Class"):
        make_plan(request(tmp_path, **{option: value}))


@pytest.mark.parametrize("value", ["nowhere:Agent", "nowhere.agents:Agent", "json.nowhere:Agent"])
def test_an_import_path_without_its_module_is_refused_before_any_trial(
    tmp_path: Path, value: str
) -> None:
    with pytest.raises(HarnessError, match="there is no module"):
        make_plan(request(tmp_path, agent=value))


def test_unsafe_process_runs_one_trial_at_a_time(tmp_path: Path) -> None:
    source = tmp_path / "tasks"
    make_task(source, "a")
    plan = make_plan(request(source, env="unsafe-process", concurrency=64))
    assert plan.concurrency == 1
    assert len(plan.specs) == 1


ALIKE = ["a b", "a_b", "a:b", ".a_b", "..a_b", "a'b", "_a", "-a", "n" * 200 + "x", "n" * 200 + "y"]


def test_tasks_whose_names_are_alike_have_trials_of_their_own(tmp_path: Path) -> None:
    source = tmp_path / "tasks"
    for name in ALIKE:
        make_task(source, name)
    plan = make_plan(request(source, repeat=2))
    ids = {spec.trial_id for spec in plan.specs}
    assert len(ids) == len(plan.specs) == 2 * len(ALIKE)


def test_a_broken_task_takes_no_other_tasks_id(tmp_path: Path) -> None:
    source = tmp_path / "tasks"
    make_task(source, "a_b")
    make_task(source, "a b", without="tests/test.sh")
    plan = make_plan(request(source, repeat=1))
    assert plan.broken[0].trial_id != plan.specs[0].trial_id


def test_a_plan_with_one_id_for_two_trials_cannot_be_made(make: Any) -> None:
    with pytest.raises(AssertionError, match="fact__000"):
        make.plan(("fact", "fact"), 1)


@given(st.lists(st.text(min_size=1), unique=True, max_size=6), st.integers(0, 9999))
def test_a_trial_id_is_a_plain_file_name(names: list[str], sample: int) -> None:
    slugs = slugs_of(names)
    assert len(set(slugs.values())) == len(slugs)
    for slug in slugs.values():
        made = trial_id(slug, sample)
        assert set(made) <= set(string.ascii_letters + string.digits + "._-")
        assert not made.startswith(".")
        assert len(made) < 200


def test_the_load_is_the_same_in_every_trial_but_for_the_second_grading(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "one")
    asked = request(
        tmp_path / "tasks", repeat=2, think="2.5", hold_s=60.0, starts_per_s=2.0, seed=7
    )
    plan = make_plan(asked)
    first, second = (spec.load for spec in plan.specs)
    assert (first.grade_twice, second.grade_twice) == (True, False)
    assert second == replace(first, grade_twice=False)
    assert (second.think, second.hold_s, second.canary, second.seed) == ("2.5", 60.0, "t", 7)
    assert plan.starts_per_s == 2.0


def test_all_trials_are_graded_twice_when_that_is_asked_for_and_none_without_samples(
    tmp_path: Path,
) -> None:
    make_task(tmp_path / "tasks", "one")
    for twice in (True, False):
        plan = make_plan(request(tmp_path / "tasks", grade_twice=twice, concurrency=3))
        assert {spec.load.grade_twice for spec in plan.specs} == {twice}


def test_a_recording_without_times_cannot_give_the_pauses(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "silent")
    timed = make_task(tmp_path / "tasks", "timed") / "solution/calls.jsonl"
    timed.write_text('{"tool": "look", "arguments": {}, "think_s": 2}\n{"final_answer": "x"}\n')
    plan = make_plan(request(tmp_path / "tasks", think="recorded*0.5"))
    assert [task.name for task in plan.broken] == ["silent"]
    assert "think_s" in plan.broken[0].problems[0]
    assert {spec.task_dir.name for spec in plan.specs} == {"timed"}


def test_own_agents_and_environments_take_arguments_and_ours_refuse_them(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "one")
    asked = request(
        tmp_path / "tasks",
        agent="envkit.agent.replay:ReplayAgent",
        env="envkit.sandbox.local:LocalEnvironment",
        agent_args=("turns=3",),
        env_args=("label=mine",),
    )
    (spec, *_) = make_plan(asked).specs
    assert (spec.agent_args, spec.env_args) == ({"turns": 3}, {"label": "mine"})
    for refused in ({"agent_args": ("turns=3",)}, {"env_args": ("label=mine",)}):
        with pytest.raises(HarnessError, match="only module:Class"):
            make_plan(request(tmp_path / "tasks", **refused))
