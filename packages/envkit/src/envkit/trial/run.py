# SPDX-License-Identifier: Apache-2.0
"""One trial as one screen of calls: start, act, grade, destroy; then what it was worth.

Harbor drives; this module hands it a guarded environment and our error policy, follows its
phases, and decides from its result *and* the ledger whether the reward may be trained on.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harbor.agents.base import BaseAgent
from harbor.trial.hooks import TrialEvent, TrialHookEvent
from harbor.trial.trial import Trial

from envkit.agent.replay import HasToolEndpoint
from envkit.agent.toolbelt import check_toolbelt
from envkit.deadline import within
from envkit.fault import EnvkitError, Fault, ModelFault, classify
from envkit.sandbox.canary import Canary
from envkit.sandbox.ledger import Ledger, ledger
from envkit.trial import policy
from envkit.trial.again import grade_again
from envkit.trial.config import trial_config
from envkit.trial.record import Attempt, Grade
from envkit.trial.request import TrialRequest
from envkit.trial.verdict import faults_of, phase_of_crash, result_of, rewards_of

_CHECK_THEMSELVES: Final = ("replay", policy.NAME)
"""Agents that look at the tools they are served, and fail as this would."""

Hold = Callable[[], Awaitable[None]]


async def run_trial(request: TrialRequest, book: Ledger, hold: Hold) -> Attempt:
    """Run one attempt; never raises for what went wrong in it, except cancellation.

    ``hold`` is awaited when the environment is up and before the agent acts: the barrier.
    """
    started_at = time.time()
    book.enter("start")
    book.canary = _canary(request)
    trial: Trial | None = None
    told: list[Fault] = []
    try:
        trial = await Trial.create(trial_config(request))
        _follow(trial, request, book, hold)
        _end_turn_on_model_faults(trial.agent)
        await trial.run()
    except Exception as error:
        told.append(classify(error, phase_of_crash(trial, book)))
    book.enter("")
    result = result_of(trial)
    faults = faults_of(told, result, book)
    attempt = _attempt(request, book, started_at, faults, rewards_of(result))
    grades = await _grades(request, attempt, book)
    return replace(attempt, phases=dict(book.seconds), grades=grades, cpu_s=_cpu_s(book))


def _canary(request: TrialRequest) -> Canary | None:
    """Where nothing is isolated, there is nothing to find out and somebody's disk to spare."""
    mark = request.load.mark_of(request.trial_name)
    return Canary(mark) if mark and not request.unsafe else None


def _follow(trial: Trial, request: TrialRequest, book: Ledger, hold: Hold) -> None:
    async def agent_starts(_: TrialHookEvent) -> None:
        await _check_tools(trial, request, request.expected_tools)
        book.enter("hold")
        await hold()
        book.enter("setup")
        await _before_agent(trial, request, book)
        book.enter("act")

    trial.add_hook(TrialEvent.AGENT_START, agent_starts)

    async def agent_ends(_: TrialHookEvent) -> None:
        book.enter("collect")
        await _settle(trial)

    trial.add_hook(TrialEvent.AGENT_END, agent_ends)

    async def verifier_starts(_: TrialHookEvent) -> None:
        book.enter("grade")

    trial.add_hook(TrialEvent.VERIFICATION_START, verifier_starts)


async def _before_agent(trial: Trial, request: TrialRequest, book: Ledger) -> None:
    """Take our marks away and, where the agent does not do it between its calls, sit idle."""
    hide: Any = getattr(trial.agent_environment, "before_agent", None)
    if hide is not None:
        await hide()
    if request.load.hold_s and request.agent != "replay":
        with book.during("idle"):
            await asyncio.sleep(request.load.hold_s)
        await _check_tools(trial, request, request.expected_tools, again=True)


async def _check_tools(
    trial: Trial, request: TrialRequest, expected: tuple[str, ...], *, again: bool = False
) -> None:
    """See that the trial's servers offer what its world says, where the agent does not."""
    environment: Any = trial.agent_environment
    served = trial.task.config.environment.mcp_servers and isinstance(environment, HasToolEndpoint)
    if request.agent in _CHECK_THEMSELVES or not served or not (expected or again):
        return
    budgets = request.budgets
    endpoint = await within("gateway_start", budgets.gateway_start_s, environment.tool_endpoint())
    await check_toolbelt(endpoint, expected, budgets)


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


def _attempt(
    request: TrialRequest,
    book: Ledger,
    started_at: float,
    faults: tuple[Fault, ...],
    rewards: dict[str, float],
) -> Attempt:
    reward = rewards.get("reward")
    blocked = any(not fault.policy.reward_valid for fault in faults)
    return Attempt(
        number=request.attempt,
        started_at=started_at,
        reward=reward,
        rewards=rewards,
        reward_valid=reward is not None and not blocked and not request.unsafe,
        faults=faults,
        peak_memory_mib=_own_memory_mib() + sum(u.peak_memory_mib for u in book.usage.values()),
        tool_calls=_tool_calls(request.trials_dir / request.trial_name),
        tools=book.tools,
        searched=book.canary.searched if book.canary else 0,
        unsearched=book.canary.failed if book.canary else 0,
    )


async def _grades(request: TrialRequest, attempt: Attempt, book: Ledger) -> tuple[Grade, ...]:
    """The reward of record and a second one; none where it was not asked for or cannot be."""
    if not request.load.grade_twice or not attempt.reward_valid:
        return ()
    with book.during("regrade"):
        second = await grade_again(request, book)
    return (Grade(reward=attempt.reward, rewards=attempt.rewards), second)


def _cpu_s(book: Ledger) -> dict[str, float]:
    boxes = {f"box:{name}": usage.cpu_s for name, usage in book.usage.items()}
    return {"trial": _own_cpu_s(), **boxes}


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _own_memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _tool_calls(trial_dir: Path) -> int:
    log = trial_dir / "agent" / "calls.jsonl"
    return sum(1 for line in log.open() if line.strip()) if log.is_file() else 0
