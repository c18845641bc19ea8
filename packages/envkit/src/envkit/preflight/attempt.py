# SPDX-License-Identifier: Apache-2.0
"""One attempt of one trial in a process of its own, asked of the fork server.

Contract: always comes back with an `Attempt`. A process that dies, hangs, or leaves nothing that
can be read becomes an attempt with a fault of the harness, which is run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from envkit.deadline import Budgets, DeadlineExceeded, deadline
from envkit.fault import EnvkitError, HarnessError, Phase, Policy, classify
from envkit.sandbox.prepare import Prepared
from envkit.sandbox.session import Server
from envkit.task import load_task
from envkit.trial.load import LoadShape
from envkit.trial.record import ATTEMPT_NAME, Attempt, attempt_from_dict
from envkit.trial.request import TrialRequest

PROCESS_LOG: Final = "process.log"
"""What the process of a trial wrote, in its directory."""

_TRANSFERS: Final = 8
"""Of one trial: what the agent leaves comes out and goes into the verifier's box, with its logs."""


class TrialDied(HarnessError):
    """The process of a trial ended without leaving an attempt."""

    policy = Policy(retry=True, grade=False, reward_valid=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one attempt needs beyond its request."""

    request: TrialRequest
    prepared: Prepared | None
    limit_s: float
    """Seconds after which its process is killed."""
    hold: bool
    """Wait for the barrier before the agent acts."""
    env: Mapping[str, str]
    """Added to the environment of its process: keys of engines and providers are there."""


async def run_attempt(server: Server, order: Order) -> Attempt:
    """Run one attempt; raises nothing but cancellation."""
    request, started_at = order.request, time.time()
    trial_dir = request.trials_dir / request.trial_name
    try:
        log = _open_log(trial_dir)
        try:
            ended = await _process(server, order, log)
        finally:
            os.close(log)
        attempt = _read(trial_dir, ended)
        parts = {"trial": float(ended["cpu_s"]), "forks": float(ended["forks_s"])}
        return replace(
            attempt, cpu_s={**attempt.cpu_s, **parts}, cpu_by_phase=ended["cpu_by_phase"]
        )
    except Exception as error:  # the boundary: no trial ends the run of the others
        fault = classify(error, Phase.RUN)
        return Attempt(number=request.attempt, started_at=started_at, faults=(fault,))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """What a launcher must know of a task."""

    limit_s: float
    """Seconds after which a trial's process is killed: its own timeouts and all its budgets."""
    again_s: float
    """Seconds that a second grading may take on top."""
    agent_s: float = 0.0
    """Of that limit, its agent's."""
    expected_tools: tuple[str, ...] = ()
    """All that its world's servers must list."""

    def limit_with(self, load: LoadShape, agent_s: float | None = None) -> float:
        """The limit of a trial that does more than its task, or whose agent has another time."""
        more_s = 0.0 if agent_s is None else agent_s - self.agent_s
        return self.limit_s + more_s + load.hold_s + (self.again_s if load.grade_twice else 0.0)


def task_facts(task_dir: Path, budgets: Budgets) -> TaskFacts:
    """Of a task that cannot be read, what its trials need to say so."""
    around_s = 2 * (budgets.start_s + budgets.stop_s) + budgets.gateway_start_s + budgets.setup_s
    around_s += budgets.mcp_connect_s + budgets.mcp_close_s + _TRANSFERS * budgets.transfer_s
    try:
        task = load_task(task_dir)
    except EnvkitError:
        return TaskFacts(limit_s=around_s, again_s=0.0)
    carried_s = budgets.start_s + budgets.stop_s + _TRANSFERS * budgets.transfer_s
    return TaskFacts(
        limit_s=task.agent_timeout_s + task.verifier_timeout_s + around_s,
        again_s=task.verifier_timeout_s + carried_s,
        agent_s=task.agent_timeout_s,
        expected_tools=task.world.expected_tools if task.world else (),
    )


def _open_log(trial_dir: Path) -> int:
    trial_dir.mkdir(parents=True, exist_ok=True)
    return os.open(trial_dir / PROCESS_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


async def _process(server: Server, order: Order, log: int) -> dict[str, Any]:
    """Fork the trial and wait for its end; kill it when its time is up."""
    name = order.request.trial_id
    spec = {
        "request": order.request.to_dict(),
        "prepared": order.prepared.to_dict() if order.prepared else None,
        "stage": str(server.stage),
        "hold": order.hold,
    }
    with _in_memory(order.env) as env:
        running = asyncio.ensure_future(
            server.channel.ask("trial", [log, env], trial=name, spec=spec)
        )
        await asyncio.sleep(0)  # it is sent: our copy can go
    try:
        async with deadline("trial", order.limit_s):
            return await asyncio.shield(running)
    except DeadlineExceeded as error:
        await server.channel.ask("stop", trial=name)
        await running
        raise TrialDied(f"did not end within {order.limit_s:g} s and was killed") from error
    finally:
        running.cancel()


@contextlib.contextmanager
def _in_memory(env: Mapping[str, str]) -> Generator[int]:
    """A file without a name that holds an environment: what passes it on need not read it."""
    fd = os.memfd_create("envkit-environment")
    try:
        os.write(fd, orjson.dumps(dict(env)))
        yield fd
    finally:
        os.close(fd)


def _read(trial_dir: Path, ended: dict[str, Any]) -> Attempt:
    path = trial_dir / ATTEMPT_NAME
    if not path.is_file():
        raise TrialDied(f"the trial's process ended with {_ending(ended['code'])}")
    try:
        return attempt_from_dict(orjson.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError) as error:
        raise TrialDied(f"{path.name} is no record of an attempt: {error!r}") from error


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"status {code}"
