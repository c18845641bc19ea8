# SPDX-License-Identifier: Apache-2.0
"""Runs trials through the fork server: waves, a barrier, retries by policy, gauges.

Contract: one ``TrialEnded`` for every spec, said once its record is on the disk. A trial's process
that dies, hangs or leaves no attempt becomes an attempt with a fault of the harness; a record that
cannot be written is said all the same; a trial that is cut off has none. A slot is free while an
attempt waits to be run again. Closing the generator closes the fork server, and with it everything
it started; temporary files that are then still there are leaks, and are removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from envkit.fault import Fault, Phase
from envkit.pace import Pace
from envkit.preflight.attempt import Order, run_attempt
from envkit.preflight.chaos.order import Injector
from envkit.preflight.gauges import Gauges, available_mib
from envkit.preflight.host import cores
from envkit.preflight.past import Past
from envkit.preflight.starts import Starts, room
from envkit.preflight.temporary import TEMPORARY, Temporary
from envkit.preflight.types import (
    Event,
    Leftover,
    Notice,
    Plan,
    RunOptions,
    TrialEnded,
    TrialPhase,
    TrialSpec,
)
from envkit.preflight.under_way import Trial, preloads, prepare_all, roots_of, worth_another
from envkit.preflight.waves import Barrier
from envkit.retry import Backoff, retry
from envkit.sandbox.channel import ChannelClosed
from envkit.sandbox.reaper import remnants
from envkit.sandbox.session import Server, forkserver
from envkit.sandbox.turns import at_work
from envkit.trial.record import Attempt, TrialRecord, write_record, write_taken
from envkit.trial.request import attempt_name

LOCAL: Final = "envkit.sandbox.local:LocalEnvironment"
UNSAFE: Final = "envkit.sandbox.unsafe:UnsafeProcessEnvironment"
ENVIRONMENTS: Final = {"local": LOCAL, "unsafe-process": UNSAFE}

AGAIN: Final = Backoff(tries=2, first_s=2.0)
"""Once more for what may pass; a second failure is worth a look, not a third try."""

_GAUGE_S: Final = 0.25
_QUIET_S: Final = 2.0
"""Preparing takes no longer when all is in the cache; beyond that the user is told."""


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
        self._starts = Starts(
            room(options.concurrency, cores(), here=self._local),
            Pace(options.starts_per_s, self._random),
        )
        self._turns = at_work(options.turns, cores(), here=self._local)
        self._barrier = Barrier()
        self._temporary = Temporary(options.out_dir.absolute() / TEMPORARY)
        self._injector = Injector.read(options.chaos) if options.chaos else None

    async def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Run every spec; see `Launcher`."""
        preparing = asyncio.create_task(
            asyncio.to_thread(prepare_all, specs, self._options, local=self._local)
        )
        await asyncio.wait([preparing], timeout=_QUIET_S)
        if not preparing.done():
            yield Notice(line="building what the tasks' boxes share; this happens once")
        trials = await preparing
        memory_before_mib = available_mib()
        wave = min(self._options.concurrency, len(trials))
        self._barrier.arm(wave if self._options.barrier else 0)
        run = self._options.run_token
        log = self._options.out_dir / "sandbox.log"
        async with (
            self._temporary.entered() as tmp,
            forkserver(
                run=run,
                on_event=self._hear,
                log=log,
                tmp=tmp,
                roots=roots_of(trials),
                turns=self._turns,
                preload=preloads(specs),
            ) as server,
            asyncio.TaskGroup() as group,
        ):
            gauges = Gauges(
                server=server,
                barrier=self._barrier,
                local=self._local,
                memory_before_mib=memory_before_mib,
            )
            gauging = group.create_task(self._gauge(gauges))
            work = [group.create_task(self._trial(server, trial)) for trial in trials]
            ended = 0
            try:
                while ended < len(work):
                    event = await self._events.get()
                    ended += isinstance(event, TrialEnded)
                    yield event
                with contextlib.suppress(ChannelClosed):  # every trial has said so itself
                    yield await gauges.read(stall_s=0.0)
            except GeneratorExit:  # closed from outside; the group would wrap it as an error
                for task in work:
                    task.cancel()
            gauging.cancel()

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now, and the temporary files that were there at its end."""
        marked = [Leftover(kind=r.kind, what=r.what) for r in remnants(self._options.run_token)]
        return [*marked, *self._temporary.left]

    async def _trial(self, server: Server, trial: Trial) -> None:
        tries = AGAIN.tries - len(trial.attempts)
        try:
            if tries > 0 and (not trial.attempts or worth_another(trial.attempts[-1])):
                await retry(
                    partial(self._try, server, trial),
                    phase=Phase.RUN,
                    idempotent=True,  # every attempt starts from nothing, in a directory of its own
                    backoff=replace(AGAIN, tries=tries),
                    slot=self._slots,
                    rng=self._random,
                    fault_of=worth_another,
                )
        finally:
            self._barrier.gone(trial.spec.trial_id)
        await self._end(trial.record())

    async def _try(self, server: Server, trial: Trial) -> Attempt:
        await self._starts.begin(trial.spec.trial_id)
        try:
            if not trial.began:
                trial.began = time.monotonic()
                self._say(trial.started)
            attempt = await self._attempt(server, trial)
        finally:
            self._starts.done(trial.spec.trial_id)
        trial.attempts.append(attempt)
        if worth_another(attempt):
            self._keep(trial.spec, attempt)
        return attempt

    def _keep(self, spec: TrialSpec, attempt: Attempt) -> None:
        """A run that is resumed goes on with the next one; the record keeps it all the same."""
        with contextlib.suppress(OSError, TypeError):  # TypeError: text that is no Unicode
            write_taken(spec.out_dir / attempt_name(spec.trial_id, attempt.number), attempt)

    async def _end(self, record: TrialRecord) -> None:
        """The trial is over, whether its record can be kept beside it or not."""
        try:
            record.trial_dir.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(write_record, record)
        except (OSError, TypeError) as error:  # TypeError: text that is no Unicode
            self._say(Notice(line=f"{record.trial_id}: its record is in the report only: {error}"))
        self._say(TrialEnded(record=record))

    def _say(self, event: Event) -> None:
        self._events.put_nowait(event)

    async def _attempt(self, server: Server, trial: Trial) -> Attempt:
        if isinstance(trial.prepared, Fault):
            fault, trial.prepared = trial.prepared, None  # another attempt prepares it again
            return Attempt(number=1, started_at=time.time(), faults=(fault,))
        order = Order(
            request=trial.request(self._environment, self._options.budgets, unsafe=self._unsafe),
            prepared=trial.prepared,
            limit_s=trial.limit_s,
            hold=self._barrier.armed,
            env={**os.environ, "TMPDIR": str(self._temporary.path)},
        )
        return await run_attempt(server, self._injector.amend(order) if self._injector else order)

    def _hear(self, message: dict[str, Any]) -> None:
        trial = message.get("trial", "")
        if message["event"] == "phase":
            self._say(TrialPhase(trial_id=trial, phase=message["phase"]))
        elif message["event"] == "up":
            self._barrier.up(trial)
            self._starts.done(trial)

    async def _gauge(self, gauges: Gauges) -> None:
        with contextlib.suppress(ChannelClosed):  # every trial says so itself
            while True:
                before = time.monotonic()
                await asyncio.sleep(_GAUGE_S)
                self._say(await gauges.read(stall_s=time.monotonic() - before - _GAUGE_S))
                if self._barrier.completed():
                    await gauges.server.channel.ask("tell", trial="*", name="go")


def launcher(env: str, options: RunOptions) -> ForkServerLauncher:
    """The launcher for ``--env``: ``local``, ``unsafe-process`` or an import path."""
    return ForkServerLauncher(env, options)


def launcher_of(plan: Plan, past: Past, chaos: Path | None = None) -> ForkServerLauncher:
    """The launcher for what is left of a plan; ``chaos`` as `RunOptions` has it."""
    return launcher(
        plan.env,
        RunOptions(
            concurrency=plan.concurrency,
            out_dir=plan.out_dir,
            run_token=plan.run_token,
            barrier=plan.gated,
            seed=plan.seed,
            starts_per_s=plan.starts_per_s,
            turns=plan.turns,
            earlier=past.earlier,
            chaos=chaos,
        ),
    )
