# SPDX-License-Identifier: Apache-2.0
"""Runs trials through the fork server: waves, a barrier, retries by policy, gauges.

Contract: one ``TrialEnded`` for every spec. A trial's process that dies, hangs or leaves no
attempt becomes an attempt with a fault of the harness. A slot is free while an attempt waits to
be run again. Closing the generator closes the fork server, and with it everything it started.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson

from envkit.deadline import Budgets, DeadlineExceeded, deadline
from envkit.fault import EnvkitError, HarnessError, Phase, Policy, classify
from envkit.preflight.types import (
    Event,
    Leftover,
    RunGauges,
    RunOptions,
    TrialEnded,
    TrialPhase,
    TrialSpec,
    TrialStarted,
)
from envkit.sandbox.prepare import Prepared, prepare
from envkit.sandbox.reaper import remnants
from envkit.sandbox.session import Server, forkserver
from envkit.task import load_task
from envkit.trial.record import (
    ATTEMPT_NAME,
    Attempt,
    TrialRecord,
    attempt_from_dict,
    decided_by,
    write_record,
)
from envkit.trial.request import TrialRequest

LOCAL: Final = "envkit.sandbox.local:LocalEnvironment"
UNSAFE: Final = "envkit.sandbox.unsafe:UnsafeProcessEnvironment"
ENVIRONMENTS: Final = {"local": LOCAL, "unsafe-process": UNSAFE}

MAX_ATTEMPTS: Final = 2
"""Once more for what may pass; a second failure is worth a look, not a third try."""

STARTS_PER_S: Final = 25.0
"""Boxes that start at one instant stand in each other's way: 25 a second starts 64 in 3 s."""

_RETRY_CAP_S: Final = 2.0
_GAUGE_S: Final = 0.25
_TRANSFERS: Final = 8
"""Of one trial: what the agent leaves comes out and goes into the verifier's box, with its logs."""


class TrialDied(HarnessError):
    """The process of a trial ended without leaving an attempt."""

    policy = Policy(retry=True, grade=False, reward_valid=False)


@dataclass(slots=True)
class _Trial:
    """One spec on its way to a record."""

    spec: TrialSpec
    prepared: Prepared | None
    limit_s: float
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    began: float = 0.0


class ForkServerLauncher:
    """`Launcher` over one fork server."""

    def __init__(self, env: str, options: RunOptions) -> None:
        self._environment = ENVIRONMENTS.get(env, env)
        self._local = self._environment == LOCAL
        self._unsafe = self._environment == UNSAFE
        self._options = options
        self._random = random.Random(options.seed)
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._starts = _Pace(STARTS_PER_S, self._random)
        self._barrier = _Barrier()
        self._memory_before = _available_mib()

    async def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Run every spec; see `Launcher`."""
        trials = await asyncio.to_thread(self._prepare_all, specs)
        wave = min(self._options.concurrency, len(trials))
        self._barrier.arm(wave if self._options.barrier else 0)
        run = self._options.run_token
        log = self._options.out_dir / "sandbox.log"
        async with (
            forkserver(run=run, on_event=self._hear, log=log) as server,
            asyncio.TaskGroup() as group,
        ):
            gauging = group.create_task(self._gauge(server))
            work = [group.create_task(self._trial(server, trial)) for trial in trials]
            ended = 0
            while ended < len(work):
                event = await self._events.get()
                ended += isinstance(event, TrialEnded)
                yield event
            gauging.cancel()

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now."""
        return [Leftover(kind=r.kind, what=r.what) for r in remnants(self._options.run_token)]

    def _prepare_all(self, specs: Sequence[TrialSpec]) -> list[_Trial]:
        """Build roots and worlds once a task; one that cannot be prepared fails in its trials."""
        shared: dict[Path, tuple[Prepared | None, float]] = {}
        for spec in specs:
            if spec.task_dir not in shared:
                limit_s = _limit_s(spec.task_dir, self._options.budgets)
                shared[spec.task_dir] = (self._prepared(spec.task_dir), limit_s)
        return [_Trial(spec, *shared[spec.task_dir]) for spec in specs]

    def _prepared(self, task_dir: Path) -> Prepared | None:
        try:
            return prepare(task_dir) if self._local else None
        except Exception:
            return None  # the trial prepares again, and reports what is wrong as its own fault

    async def _trial(self, server: Server, trial: _Trial) -> None:
        spec = trial.spec
        try:
            while True:
                async with self._slots:
                    await self._starts.wait()
                    trial.began = trial.began or time.monotonic()
                    if not trial.attempts:
                        self._say(_started(spec))
                    trial.attempts.append(await self._attempt(server, trial))
                if not self._again(trial):
                    break
                await asyncio.sleep(self._random.uniform(0, _RETRY_CAP_S))
        finally:
            self._barrier.gone(spec.trial_id)
            if trial.attempts:
                self._events.put_nowait(TrialEnded(record=_record(trial)))

    def _say(self, event: Event) -> None:
        self._events.put_nowait(event)

    def _again(self, trial: _Trial) -> bool:
        last = trial.attempts[-1]
        if last.reward_valid or len(trial.attempts) >= MAX_ATTEMPTS:
            return False  # a rewarded trial is never rerun
        # One that may pass is enough: what seems final beside it may be its consequence.
        return any(f.policy.retry for f in last.faults if not f.policy.reward_valid)

    async def _attempt(self, server: Server, trial: _Trial) -> Attempt:
        request = TrialRequest(
            trial_id=trial.spec.trial_id,
            attempt=len(trial.attempts) + 1,
            task_dir=trial.spec.task_dir,
            trials_dir=trial.spec.out_dir,
            agent=trial.spec.agent,
            environment=self._environment,
            budgets=self._options.budgets,
            unsafe=self._unsafe,
        )
        started_at = time.time()
        trial_dir = request.trials_dir / request.trial_name
        trial_dir.mkdir(parents=True, exist_ok=True)
        log = os.open(trial_dir / "process.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        spec = {
            "request": request.to_dict(),
            "prepared": trial.prepared.to_dict() if trial.prepared else None,
            "stage": str(server.stage),
            "hold": self._barrier.armed,
        }
        try:
            ended = await self._process(server, trial, spec, log)
            return _with_cpu(_read_attempt(trial_dir, ended), ended)
        except Exception as error:  # the boundary: no trial ends the run of the others
            fault = classify(error, Phase.RUN)
            return Attempt(number=request.attempt, started_at=started_at, faults=(fault,))
        finally:
            os.close(log)

    async def _process(
        self, server: Server, trial: _Trial, spec: dict[str, Any], log: int
    ) -> dict[str, Any]:
        name = trial.spec.trial_id
        env = {} if self._local else dict(os.environ)
        running = asyncio.ensure_future(
            server.channel.ask("trial", [log], trial=name, spec=spec, env=env)
        )
        try:
            async with deadline("trial", trial.limit_s):
                return await asyncio.shield(running)
        except DeadlineExceeded as error:
            await server.channel.ask("stop", trial=name)
            await running
            raise TrialDied(f"did not end within {trial.limit_s:g} s and was killed") from error
        finally:
            running.cancel()

    def _hear(self, message: dict[str, Any]) -> None:
        trial = message.get("trial", "")
        if message["event"] == "phase":
            self._say(TrialPhase(trial_id=trial, phase=message["phase"]))
        elif message["event"] == "up":
            self._barrier.up(trial)

    async def _gauge(self, server: Server) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(_GAUGE_S)
            stall = time.monotonic() - before - _GAUGE_S
            census = await server.channel.ask("census")
            live = int(census["live"]) if self._local else self._barrier.held
            self._say(
                RunGauges(
                    live_boxes=live,
                    loop_stall_ms=max(0.0, stall * 1000),
                    memory_mib=max(0.0, self._memory_before - _available_mib()),
                )
            )
            if self._barrier.completed():
                await server.channel.ask("tell", trial="*", name="go")


@dataclass(slots=True)
class _Barrier:
    """Holds the first wave until each of its trials is up, or will never be."""

    wave: int = 0
    armed: bool = False
    _up: set[str] = field(default_factory=set[str])
    _gone: set[str] = field(default_factory=set[str])

    def arm(self, wave: int) -> None:
        self.wave, self.armed = wave, wave > 0

    @property
    def held(self) -> int:
        """Trials that are up and not over."""
        return len(self._up - self._gone)

    def up(self, trial: str) -> None:
        self._up.add(trial)

    def gone(self, trial: str) -> None:
        self._gone.add(trial)

    def completed(self) -> bool:
        """True once, when the wave is complete."""
        if not self.armed or len(self._up | self._gone) < self.wave:
            return False
        self.armed = False
        return True


class _Pace:
    """At most so many starts a second, with jitter, in the order they were asked for."""

    def __init__(self, per_s: float, dice: random.Random) -> None:
        self._gap_s = 1 / per_s
        self._dice = dice
        self._next = 0.0

    async def wait(self) -> None:
        now = time.monotonic()
        self._next = max(self._next, now) + self._gap_s * self._dice.uniform(0.5, 1.5)
        await asyncio.sleep(self._next - now)


def _started(spec: TrialSpec) -> TrialStarted:
    return TrialStarted(trial_id=spec.trial_id, task=spec.task_dir.name, sample=spec.sample)


def _limit_s(task_dir: Path, budgets: Budgets) -> float:
    """Seconds after which a trial's process is killed: its own timeouts and all its budgets."""
    around_s = 2 * (budgets.start_s + budgets.stop_s) + budgets.gateway_start_s + budgets.setup_s
    around_s += budgets.mcp_connect_s + budgets.mcp_close_s + _TRANSFERS * budgets.transfer_s
    try:
        task = load_task(task_dir)
    except EnvkitError:
        return around_s
    return task.agent_timeout_s + task.verifier_timeout_s + around_s


def _read_attempt(trial_dir: Path, ended: dict[str, Any]) -> Attempt:
    path = trial_dir / ATTEMPT_NAME
    if not path.is_file():
        raise TrialDied(f"the trial's process ended with {_ending(ended['code'])}")
    try:
        return attempt_from_dict(orjson.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError) as error:
        raise TrialDied(f"{path.name} is no record of an attempt: {error!r}") from error


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"status {code}"


def _with_cpu(attempt: Attempt, ended: dict[str, Any]) -> Attempt:
    return replace(attempt, cpu_s={**attempt.cpu_s, "trial": float(ended["cpu_s"])})


def _record(trial: _Trial) -> TrialRecord:
    """The record of a trial, left in its last attempt's directory for audit and for people."""
    last = trial.attempts[-1]
    name = (
        trial.spec.trial_id if last.number == 1 else f"{trial.spec.trial_id}.attempt{last.number}"
    )
    record = TrialRecord(
        trial_id=trial.spec.trial_id,
        task=trial.spec.task_dir.name,
        sample=trial.spec.sample,
        agent=trial.spec.agent,
        attempts=tuple(trial.attempts),
        verdict="graded" if last.reward is not None else "no_verdict",
        reward=last.reward,
        reward_valid=last.reward_valid,
        fault=decided_by(last.faults),
        trial_dir=trial.spec.out_dir / name,
        seconds=time.monotonic() - trial.began,
    )
    write_record(record)
    return record


def _available_mib() -> float:
    """Memory this machine could still give, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return 0.0


def launcher(env: str, options: RunOptions) -> ForkServerLauncher:
    """The launcher for ``--env``: ``local``, ``unsafe-process`` or an import path."""
    return ForkServerLauncher(env, options)
