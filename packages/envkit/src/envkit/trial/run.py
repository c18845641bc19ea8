# SPDX-License-Identifier: Apache-2.0
"""One trial as one screen of calls: start, act, grade, destroy; then what it was worth.

Harbor drives; this module hands it a guarded environment and our error policy, follows its
phases, and decides from its result *and* the ledger whether the reward may be trained on.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from harbor.agents.base import BaseAgent
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.models.trial.result import ExceptionInfo, TrialResult
from harbor.trial.hooks import TrialEvent, TrialHookEvent
from harbor.trial.trial import Trial

from envkit.deadline import within
from envkit.fault import (
    BudgetUse,
    EnvkitError,
    Fault,
    ModelFault,
    Phase,
    RewardUnreadable,
    classify,
    error_policy_overrides,
)
from envkit.sandbox import guard
from envkit.sandbox.ledger import Ledger, ledger
from envkit.trial.record import Attempt
from envkit.trial.request import TrialRequest

Hold = Callable[[], Awaitable[None]]

_ORDER: Final = tuple(Phase)


async def run_trial(request: TrialRequest, book: Ledger, hold: Hold) -> Attempt:
    """Run one attempt; never raises for what went wrong in it, except cancellation.

    ``hold`` is awaited when the environment is up and before the agent acts: the barrier.
    """
    started_at = time.time()
    book.enter("start")
    trial: Trial | None = None
    told: list[Fault] = []
    try:
        trial = await Trial.create(_config(request))
        _follow(trial, book, hold)
        _end_turn_on_model_faults(trial.agent)
        await trial.run()
    except Exception as error:
        told.append(classify(error, _phase_of_crash(trial, book)))
    book.enter("")
    result = _result(trial)
    faults = _faults(told, result, book) if result else [*told, *book.faults]
    return _attempt(request, book, started_at, tuple(faults), _rewards(result))


def _result(trial: Trial | None) -> TrialResult | None:
    """What Harbor has of the trial, also where it did not come to return it."""
    try:
        return trial.result if trial else None
    except RuntimeError:
        return None  # it never began


def _rewards(result: TrialResult | None) -> dict[str, float]:
    verdict = result.verifier_result if result else None
    found = verdict.rewards if verdict else None
    return {name: float(value) for name, value in (found or {}).items()}


def _phase_of_crash(trial: Trial | None, book: Ledger) -> Phase:
    """What goes wrong once there is a verdict costs no reward."""
    result = _result(trial)
    return Phase.STOP if result and result.verifier_result else book.phase


def _config(request: TrialRequest) -> TrialConfig:
    return TrialConfig(
        task=TaskConfig(path=request.task_dir),
        trial_name=request.trial_name,
        trials_dir=request.trials_dir,
        agent=_agent(request),
        environment=EnvironmentConfig(import_path=guard.import_path(request.environment)),
        **_error_policy(),
    )


def _error_policy() -> dict[str, Any]:
    """Harbor 0.25 takes no policy; there it decides only whether to grade, not what is valid."""
    known = "override_error_policy" in TrialConfig.model_fields
    return {"override_error_policy": error_policy_overrides()} if known else {}


def _agent(request: TrialRequest) -> AgentConfig:
    setup_s = request.budgets.setup_s
    if request.agent == "replay":
        calls = str(request.task_dir / "solution" / "calls.jsonl")
        known = {"calls_path": calls, "budgets": asdict(request.budgets)}
        path = "envkit.agent.replay:ReplayAgent"
        return AgentConfig(import_path=path, kwargs=known, override_setup_timeout_sec=setup_s)
    if ":" in request.agent:
        return AgentConfig(import_path=request.agent, override_setup_timeout_sec=setup_s)
    return AgentConfig(name=request.agent, override_setup_timeout_sec=setup_s)


def _follow(trial: Trial, book: Ledger, hold: Hold) -> None:
    async def agent_starts(_: TrialHookEvent) -> None:
        book.enter("hold")
        await hold()
        book.enter("act")

    trial.add_hook(TrialEvent.AGENT_START, agent_starts)

    async def agent_ends(_: TrialHookEvent) -> None:
        book.enter("collect")
        await _settle(trial)

    trial.add_hook(TrialEvent.AGENT_END, agent_ends)

    async def verifier_starts(_: TrialHookEvent) -> None:
        book.enter("grade")

    trial.add_hook(TrialEvent.VERIFICATION_START, verifier_starts)


def _end_turn_on_model_faults(agent: BaseAgent) -> None:
    """What the model caused ends its turn, and what it did until then is graded.

    Harbor 0.25 grades nothing after an exception it does not know, and knows none of ours.
    """
    act = agent.run

    async def run(*args: Any, **named: Any) -> None:
        try:
            await act(*args, **named)
        except ModelFault as error:
            ledger().note(error)

    agent.run = run


async def _settle(trial: Trial) -> None:
    """Stop what the agent left running, unless the task collects from what runs.

    What that shows to be broken goes on the ledger; a hook that raises would end the trial.
    """
    settle = getattr(trial.agent_environment, "settle", None)
    if settle is None or trial.task.config.verifier.collect:
        return
    try:
        await within("stop", ledger().budgets.stop_s, settle())
    except EnvkitError as error:
        with ledger().during("act"):  # what is broken now was broken while the agent acted
            ledger().note(error)


def _faults(told: list[Fault], result: TrialResult, book: Ledger) -> list[Fault]:
    """What decided first: what takes the reward away, in the order in which it struck.

    In one phase what the guard saw comes before what Harbor tells, which may be its consequence.
    """
    infos = [result.exception_info, *(s.exception_info for s in result.step_results or [])]
    told = told + [_told(info, result, book) for info in infos if info is not None]
    faults = [*book.faults, *told, *_unread(result)]
    return sorted(dict.fromkeys(faults), key=_precedence)


def _told(info: ExceptionInfo, result: TrialResult, book: Ledger) -> Fault:
    """Harbor's model refuses a reward that is not numbers by name with a bare ValidationError."""
    phase = _phase_at(result, info.occurred_at)
    if "validation error for VerifierResult" in info.exception_message:
        return classify(RewardUnreadable("the verifier's reward is not numbers by name"), phase)
    return classify(info.model_dump(), phase, use=_budget_use(result, book))


def _budget_use(result: TrialResult, book: Ledger) -> BudgetUse | None:
    """What used up the agent's time; sampled tokens come with the agent loop."""
    timer = result.agent_execution
    if timer is None or timer.started_at is None or timer.finished_at is None:
        return None
    spent = (timer.finished_at - timer.started_at).total_seconds()
    return BudgetUse(budget_s=spent, model_s=0.0, commands_s=book.commands_s)


def _precedence(fault: Fault) -> tuple[bool, int]:
    return fault.policy.reward_valid, _ORDER.index(fault.phase)


def _unread(result: TrialResult) -> list[Fault]:
    """A verdict without the one number that training reads is none."""
    verdict = result.verifier_result
    if verdict is None or "reward" in (verdict.rewards or {}):
        return []
    keys = ", ".join(verdict.rewards or {}) or "nothing"
    error = RewardUnreadable(f"the verifier wrote {keys}, but no 'reward'")
    return [classify(error, Phase.GRADE)]


def _phase_at(result: TrialResult, when: datetime) -> Phase:
    """Where Harbor's own exception was raised, by which of its timers had begun by then."""
    timers = (
        (Phase.GRADE, result.verifier),
        (Phase.ACT, result.agent_execution),
        (Phase.SETUP, result.agent_setup),
    )
    begun = (
        phase for phase, timer in timers if timer and timer.started_at and timer.started_at <= when
    )
    return next(begun, Phase.START)


def _attempt(
    request: TrialRequest,
    book: Ledger,
    started_at: float,
    faults: tuple[Fault, ...],
    rewards: dict[str, float],
) -> Attempt:
    reward = rewards.get("reward")
    blocked = any(not fault.policy.reward_valid for fault in faults)
    boxes = {f"box:{name}": usage.cpu_s for name, usage in book.usage.items()}
    return Attempt(
        number=request.attempt,
        started_at=started_at,
        phases=dict(book.seconds),
        reward=reward,
        rewards=rewards,
        reward_valid=reward is not None and not blocked and not request.unsafe,
        faults=faults,
        cpu_s={"trial": _own_cpu_s(), **boxes},
        peak_memory_mib=_own_memory_mib() + sum(u.peak_memory_mib for u in book.usage.values()),
        tool_calls=_tool_calls(request.trials_dir / request.trial_name),
    )


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _own_memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _tool_calls(trial_dir: Path) -> int:
    log = trial_dir / "agent" / "calls.jsonl"
    return sum(1 for line in log.open() if line.strip()) if log.is_file() else 0
