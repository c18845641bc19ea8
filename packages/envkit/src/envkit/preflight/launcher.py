# SPDX-License-Identifier: Apache-2.0
"""Runs trials through the fork server: waves, a barrier, retries by policy, gauges.

Contract: one ``TrialEnded`` for every spec. A trial's process that dies, hangs or leaves no
attempt becomes an attempt with a fault of the harness. A slot is free while an attempt waits to
be run again. Closing the generator closes the fork server, and with it everything it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from envkit.preflight.attempt import Order, limit_s, run_attempt
from envkit.preflight.types import (
    Event,
    Leftover,
    Notice,
    RunGauges,
    RunOptions,
    TrialEnded,
    TrialPhase,
    TrialSpec,
    TrialStarted,
)
from envkit.preflight.waves import Barrier, Pace
from envkit.sandbox.channel import ChannelClosed
from envkit.sandbox.prepare import Prepared, prepare
from envkit.sandbox.reaper import remnants
from envkit.sandbox.session import Server, forkserver
from envkit.trial.record import Attempt, TrialRecord, decided_by, write_record
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
_QUIET_S: Final = 2.0
"""Preparing takes no longer when all is in the cache; beyond that the user is told."""


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
        self._starts = Pace(STARTS_PER_S, self._random)
        self._barrier = Barrier()
        self._memory_before = 0.0

    async def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Run every spec; see `Launcher`."""
        preparing = asyncio.create_task(asyncio.to_thread(self._prepare_all, specs))
        await asyncio.wait([preparing], timeout=_QUIET_S)
        if not preparing.done():
            yield Notice(line="building what the tasks' boxes share; this happens once")
        trials = await preparing
        self._memory_before = _available_mib()
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
            try:
                while ended < len(work):
                    event = await self._events.get()
                    ended += isinstance(event, TrialEnded)
                    yield event
            except GeneratorExit:  # closed from outside; the group would wrap it as an error
                for task in work:
                    task.cancel()
            gauging.cancel()

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now."""
        return [Leftover(kind=r.kind, what=r.what) for r in remnants(self._options.run_token)]

    def _prepare_all(self, specs: Sequence[TrialSpec]) -> list[_Trial]:
        """Build roots and worlds once a task; one that cannot be prepared fails in its trials."""
        shared: dict[Path, tuple[Prepared | None, float]] = {}
        for spec in specs:
            if spec.task_dir not in shared:
                seconds = limit_s(spec.task_dir, self._options.budgets)
                shared[spec.task_dir] = (self._prepared(spec.task_dir), seconds)
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
        order = Order(
            request=request,
            prepared=trial.prepared,
            limit_s=trial.limit_s,
            hold=self._barrier.armed,
            env={} if self._local else dict(os.environ),
        )
        return await run_attempt(server, order)

    def _hear(self, message: dict[str, Any]) -> None:
        trial = message.get("trial", "")
        if message["event"] == "phase":
            self._say(TrialPhase(trial_id=trial, phase=message["phase"]))
        elif message["event"] == "up":
            self._barrier.up(trial)

    async def _gauge(self, server: Server) -> None:
        with contextlib.suppress(ChannelClosed):  # every trial says so itself
            while True:
                before = time.monotonic()
                await asyncio.sleep(_GAUGE_S)
                stall = time.monotonic() - before - _GAUGE_S
                await self._read_gauges(server, stall)

    async def _read_gauges(self, server: Server, stall: float) -> None:
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


def _started(spec: TrialSpec) -> TrialStarted:
    return TrialStarted(trial_id=spec.trial_id, task=spec.task_dir.name, sample=spec.sample)


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
