# SPDX-License-Identifier: Apache-2.0
"""Harbor's configuration of a trial: a guarded environment, our error policy, our agents."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harbor.models.trial.config import (
    AgentConfig,
    EnvironmentConfig,
    SourceTrialConfig,
    TaskConfig,
    TrialConfig,
)

from envkit.fault import error_policy_overrides
from envkit.sandbox import guard
from envkit.task import load_task
from envkit.trial import policy
from envkit.trial.request import TrialRequest

REPLAY = "envkit.agent.replay:ReplayAgent"


def trial_config(request: TrialRequest) -> TrialConfig:
    """The trial itself."""
    return TrialConfig(
        task=TaskConfig(path=request.task_dir),
        trial_name=request.trial_name,
        trials_dir=request.trials_dir,
        agent=_agent(request),
        environment=_environment(request),
        **_error_policy(),
    )


def again_config(request: TrialRequest) -> TrialConfig:
    """The verifier once more, on what the trial collected; its files lie inside the trial's."""
    source = request.trials_dir / request.trial_name
    return TrialConfig(
        task=TaskConfig(path=request.task_dir),
        trial_name=f"{request.trial_name}.again",
        trials_dir=source,
        agent=AgentConfig(name="nop"),
        environment=_environment(request),
        source_trial=SourceTrialConfig(action="regrade", type="local", path=source),
        **_error_policy(),
    )


def _environment(request: TrialRequest) -> EnvironmentConfig:
    path = guard.import_path(request.environment)
    return EnvironmentConfig(import_path=path, kwargs=dict(request.env_args))


def _error_policy() -> dict[str, Any]:
    """Harbor 0.25 takes no policy; there it decides only whether to grade, not what is valid."""
    known = "override_error_policy" in TrialConfig.model_fields
    return {"override_error_policy": error_policy_overrides()} if known else {}


def _agent(request: TrialRequest) -> AgentConfig:
    setup_s = request.budgets.setup_s
    if request.agent == "replay":
        known = _replay_kwargs(request)
        return AgentConfig(
            import_path=REPLAY,
            kwargs=known,
            override_setup_timeout_sec=setup_s,
            override_timeout_sec=_longer_s(request),
        )
    if request.agent == policy.NAME:
        return AgentConfig(
            import_path=policy.AGENT,
            kwargs=policy.kwargs_of(request),
            override_setup_timeout_sec=setup_s,
            override_timeout_sec=policy.agent_wall_s(request) + request.load.hold_s,
        )
    if ":" in request.agent:
        kwargs = dict(request.agent_args)
        path = request.agent
        return AgentConfig(import_path=path, kwargs=kwargs, override_setup_timeout_sec=setup_s)
    return AgentConfig(name=request.agent, override_setup_timeout_sec=setup_s)


def _replay_kwargs(request: TrialRequest) -> dict[str, Any]:
    return {
        "calls_path": str(request.task_dir / "solution" / "calls.jsonl"),
        "budgets": asdict(request.budgets),
        "think": request.load.think,
        "seed": request.load.seed_of(request.trial_id),
        "hold_s": request.load.hold_s,
        "expected_tools": list(request.expected_tools),
    }


def _longer_s(request: TrialRequest) -> float | None:
    """Waiting for an engine is no model's time: the idle time is added to the agent's."""
    if not request.load.hold_s:
        return None
    return load_task(request.task_dir).agent_timeout_s + request.load.hold_s
