# SPDX-License-Identifier: Apache-2.0
"""A task's time is the model's own; by the clock its trial may take longer, and is ended then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envkit.deadline import DEFAULT_BUDGETS
from envkit.preflight.attempt import task_facts
from envkit.preflight.types import TrialSpec
from envkit.preflight.under_way import Trial, preloads
from envkit.trial import policy
from envkit.trial.config import trial_config
from envkit.trial.request import TrialRequest

from .tiny import make_task, spec


def request(task: Path, args: dict[str, Any]) -> TrialRequest:
    return TrialRequest(
        trial_id="t__000",
        attempt=1,
        task_dir=task,
        trials_dir=task.parent / "out",
        agent="model",
        environment="envkit.sandbox.local:LocalEnvironment",
        expected_tools=("a_tool",),
        agent_args=args,
    )


def test_the_tasks_time_is_the_models_own_unless_told_otherwise(tmp_path: Path) -> None:
    task = make_task(tmp_path, agent_s=300)
    kwargs = policy.kwargs_of(request(task, {"limits": {"turns": 3}}))
    assert kwargs["limits"] == {"turns": 3, "own_s": 300.0}
    kwargs = policy.kwargs_of(request(task, {"limits": {"own_s": 20.0}}))
    assert kwargs["limits"] == {"own_s": 20.0}
    assert kwargs["expected_tools"] == ["a_tool"]


def test_budgets_that_are_not_named_are_the_runs(tmp_path: Path) -> None:
    kwargs = policy.kwargs_of(request(make_task(tmp_path), {"budgets": {"generate_idle_s": 7.0}}))
    assert kwargs["budgets"]["generate_idle_s"] == 7.0
    assert kwargs["budgets"]["mcp_call_s"] == DEFAULT_BUDGETS.mcp_call_s


@pytest.mark.parametrize(
    ("own_s", "wall_s"), [(60.0, 1860.0), (600.0, 2400.0), (3600.0, 14_400.0), (0.0, 86_400.0)]
)
def test_waiting_is_granted_on_top(own_s: float, wall_s: float) -> None:
    assert policy.wall_s({"limits": {"own_s": own_s}}, 5.0) == wall_s


def test_harbor_ends_the_agent_by_the_clock_and_the_process_is_killed_after_that(
    tmp_path: Path,
) -> None:
    task = make_task(tmp_path, agent_s=3600)
    config = trial_config(request(task, {"engine": "http://h", "tokenizer": "/m"}))
    assert config.agent.import_path == policy.AGENT
    assert config.agent.override_timeout_sec == 14_400.0
    (limit, usual) = (_limit(spec(task, tmp_path, agent=agent)) for agent in ("model", "replay"))
    assert limit - usual == 14_400.0 - 3600.0


def _limit(of: TrialSpec) -> float:
    facts = task_facts(of.task_dir, DEFAULT_BUDGETS)
    return Trial(spec=of, prepared=None, facts=facts).limit_s


def test_each_tokenizer_is_loaded_once_before_the_forks(tmp_path: Path) -> None:
    task = make_task(tmp_path)
    args = [{"tokenizer": "/m", "engine": "e"}, {"tokenizer": "/m"}, {"tokenizer": "/n"}]
    specs = [
        TrialSpec(
            trial_id=f"t__00{n}",
            task_dir=task,
            sample=n,
            agent="model",
            out_dir=tmp_path,
            env="local",
            agent_args=each,
        )
        for n, each in enumerate(args)
    ]
    loads = preloads([*specs, spec(task, tmp_path)])
    assert loads == [(policy.PRELOAD, {"tokenizer": "/m"}), (policy.PRELOAD, {"tokenizer": "/n"})]


def test_a_model_to_be_started_is_named_for_processes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert policy.absolute("vllm:models/a") == f"vllm:{tmp_path}/models/a"
    assert policy.absolute("http://h:1") == "http://h:1"
