# SPDX-License-Identifier: Apache-2.0
"""Trials over one fork server, each begun by itself while it runs: slots, starts, gauges, ends.

Contract: of every trial that was begun one end is said: `TrialEnded` once its record is on the
disk, or `TrialCancelled` once nothing of it runs any more. A trial's process that dies, hangs or
leaves no attempt becomes an attempt with a fault of the harness; a record that cannot be written is
said all the same. A slot is free while an attempt waits to be run again. A floor that is left is
empty: the fork server is closed, and with it everything it started; temporary files that are then
still there are leaks, and are removed. Of trials that were under way no end is said then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from envkit.deadline import DeadlineExceeded, deadline
from envkit.fault import Fault, Phase
from envkit.pace import Pace
from envkit.preflight.attempt import Order, run_attempt
from envkit.preflight.chaos.order import Injector
from envkit.preflight.gauges import Gauges, available_mib
from envkit.preflight.host import cores
from envkit.preflight.starts import Starts, room
from envkit.preflight.temporary import TEMPORARY, Temporary
from envkit.preflight.types import (
    FloorEvent,
    Leftover,
    Notice,
    RunGauges,
    RunOptions,
    TrialCancelled,
    TrialEnded,
    TrialPhase,
)
from envkit.preflight.under_way import Trial, worth_another
from envkit.preflight.waves import Barrier
from envkit.retry import Backoff, retry
from envkit.sandbox.channel import ChannelClosed
from envkit.sandbox.reaper import remnants
from envkit.sandbox.session import Server, forkserver
from envkit.sandbox.spec import Preload
from envkit.sandbox.turns import at_work
from envkit.trial.record import Attempt, TrialRecord, write_record, write_taken
from envkit.trial.request import attempt_name

LOCAL: Final = "envkit.sandbox.local:LocalEnvironment"
UNSAFE: Final = "envkit.sandbox.unsafe:UnsafeProcessEnvironment"
ENVIRONMENTS: Final = {"local": LOCAL, "unsafe-process": UNSAFE}

AGAIN: Final = Backoff(tries=2, first_s=2.0)
"""Once more for what may pass; a second failure is worth a look, not a third try."""
ONCE: Final = Backoff(tries=1)
"""Where whoever begins the trials decides what is run again."""
SANDBOX_LOG: Final = "sandbox.log"
"""What the fork server complained of, in the run's directory."""

_GAUGE_S: Final = 0.25
_KILLED_S: Final = 1.0
"""After which a trial that was killed is killed again: it may not have been forked yet."""


@dataclass(slots=True)
class _Work:
    """A trial that was begun."""

    trial: Trial
    task: asyncio.Task[None]
    acting: bool = False
    """Its attempt has a process, or is about to."""
    over: bool = False
    """It has ended, and its record is being kept."""
    record: TrialRecord | None = None
    """Once it is."""


@dataclass(frozen=True, slots=True)
class _Running:
    """What a floor has while it is open."""

    server: Server
    group: asyncio.TaskGroup
    gauges: Gauges


class Floor:
    """Where trials are run; nothing is before it is opened."""

    def __init__(
        self,
        env: str,
        options: RunOptions,
        say: Callable[[FloorEvent], None],
        *,
        again: Backoff = AGAIN,
    ) -> None:
        self._environment = ENVIRONMENTS.get(env, env)
        self.local = self._environment == LOCAL
        """Whether its boxes are this machine's."""
        self._unsafe = self._environment == UNSAFE
        self._options = options
        self._say = say
        self._again = again
        self._random = random.Random(options.seed)
        self._slots = asyncio.Semaphore(options.concurrency)
        self._starts = Starts(
            room(options.concurrency, cores(), here=self.local),
            Pace(options.starts_per_s, self._random),
        )
        self._turns = at_work(options.turns, cores(), here=self.local)
        self._barrier = Barrier()
        self._temporary = Temporary(options.out_dir.absolute() / TEMPORARY)
        self._injector = Injector.read(options.chaos) if options.chaos else None
        self._work: dict[str, _Work] = {}
        self._running: _Running | None = None
        self._left = False
        self.lost = asyncio.Event()
        """Set once the fork server is gone, and with it all that was under way."""

    @asynccontextmanager
    async def open(
        self, *, roots: Sequence[Path], preload: Preload, wave: int = 0
    ) -> AsyncGenerator[None]:
        """Until it is left, trials may begin; the first ``wave`` of them wait for each other.

        The interpreters of ``roots`` are warm then, and ``preload`` is done.

        Raises:
            SandboxUnavailable: no fork server can be had; its last line says why.
            DeadlineExceeded: it was not ready in time.
        """
        memory_before_mib = available_mib()
        self._barrier.arm(wave)
        async with (
            self._temporary.entered() as tmp,
            forkserver(
                run=self._options.run_token,
                on_event=self._hear,
                log=self._options.out_dir / SANDBOX_LOG,
                tmp=tmp,
                roots=roots,
                turns=self._turns,
                preload=preload,
            ) as server,
            asyncio.TaskGroup() as group,
        ):
            gauges = Gauges(
                server=server,
                barrier=self._barrier,
                local=self.local,
                memory_before_mib=memory_before_mib,
            )
            self._running = _Running(server, group, gauges)
            gauging = group.create_task(self._gauge())
            try:
                yield
            finally:
                self._left = True
                for work in self._work.values():
                    work.task.cancel()
                gauging.cancel()

    def begin(self, trial: Trial) -> None:
        """Run it as soon as there is a slot; no other one of its name may be under way."""
        name = trial.spec.trial_id
        assert name not in self._work, f"{name} is under way"
        task = self._open.group.create_task(self._trial(trial))
        self._work[name] = _Work(trial, task)
        task.add_done_callback(lambda _: self._over(trial))

    def cancel(self, trial_id: str) -> bool:
        """Kill a trial and its boxes; False where none of that name is under way any more."""
        work = self._work.get(trial_id)
        if work is None or work.over:
            return False
        if not work.trial.cancelled:
            work.trial.cancelled = True
            if work.acting:
                self._open.group.create_task(self._kill(work))
            else:
                work.task.cancel()
        return True

    @property
    def under_way(self) -> int:
        """Trials that were begun and have not ended."""
        return len(self._work)

    @property
    def acting(self) -> int:
        """Of them, those that have a slot and a process."""
        return sum(work.acting for work in self._work.values())

    @property
    def starting(self) -> int:
        """Of them, those that are on their way up."""
        return self._starts.under_way

    async def gauges(self, stall_s: float = 0.0) -> RunGauges:
        """A reading of all of it; ``stall_s`` is by how much the loop came late.

        Raises:
            ChannelClosed: the fork server is gone.
        """
        return await self._open.gauges.read(stall_s)

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now, and the temporary files that were there at its end."""
        marked = [Leftover(kind=r.kind, what=r.what) for r in remnants(self._options.run_token)]
        return [*marked, *self._temporary.left]

    @property
    def _open(self) -> _Running:
        assert self._running is not None, "open() comes first"
        return self._running

    async def _trial(self, trial: Trial) -> None:
        tries = self._again.tries - len(trial.attempts)
        try:
            if tries > 0 and (not trial.attempts or worth_another(trial.attempts[-1])):
                await retry(
                    partial(self._try, trial),
                    phase=Phase.RUN,
                    idempotent=True,  # every attempt starts from nothing, in a directory of its own
                    backoff=replace(self._again, tries=tries),
                    slot=self._slots,
                    rng=self._random,
                    fault_of=lambda attempt: None if trial.cancelled else worth_another(attempt),
                )
        finally:
            self._barrier.gone(trial.spec.trial_id)
        if not trial.cancelled:
            work = self._work[trial.spec.trial_id]
            work.over, record = True, trial.record()
            await self._keep_record(record)
            work.record = record

    def _over(self, trial: Trial) -> None:
        """A trial of its name may begin now; also of one that was cancelled before it could."""
        work = self._work.pop(trial.spec.trial_id)
        if work.record is not None:
            self._say(TrialEnded(record=work.record))
        elif trial.cancelled and not self._left:
            self._say(TrialCancelled(trial_id=trial.spec.trial_id))

    async def _try(self, trial: Trial) -> Attempt:
        await self._starts.begin(trial.spec.trial_id)
        try:
            if not trial.began:
                trial.began = time.monotonic()
                self._say(trial.started)
            attempt = await self._acted(trial)
        finally:
            self._starts.done(trial.spec.trial_id)
        trial.attempts.append(attempt)
        if worth_another(attempt):
            self._keep(trial, attempt)
        return attempt

    def _keep(self, trial: Trial, attempt: Attempt) -> None:
        """A run that is resumed goes on with the next one; the record keeps it all the same."""
        spec = trial.spec
        with contextlib.suppress(OSError, TypeError):  # TypeError: text that is no Unicode
            write_taken(spec.out_dir / attempt_name(spec.trial_id, attempt.number), attempt)

    async def _keep_record(self, record: TrialRecord) -> None:
        """The trial is over, whether its record can be kept beside it or not."""
        try:
            record.trial_dir.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(write_record, record)
        except (OSError, TypeError) as error:  # TypeError: text that is no Unicode
            self._say(Notice(line=f"{record.trial_id}: its record is in the report only: {error}"))

    async def _acted(self, trial: Trial) -> Attempt:
        work = self._work[trial.spec.trial_id]
        work.acting = True
        try:
            return await self._attempt(trial)
        finally:
            work.acting = False

    async def _attempt(self, trial: Trial) -> Attempt:
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
        order = self._injector.amend(order) if self._injector else order
        return await run_attempt(self._open.server, order)

    async def _kill(self, work: _Work) -> None:
        """Until it is dead: what is about to be forked is nothing yet that can be killed."""
        name, stop_s = work.trial.spec.trial_id, self._options.budgets.stop_s
        while work.acting and not work.task.done():
            with contextlib.suppress(ChannelClosed, DeadlineExceeded):
                async with deadline("stop", stop_s):
                    await self._open.server.channel.ask("stop", trial=name)
            await asyncio.wait({work.task}, timeout=_KILLED_S)

    def _hear(self, message: dict[str, Any]) -> None:
        trial = message.get("trial", "")
        if message["event"] == "phase":
            self._say(TrialPhase(trial_id=trial, phase=message["phase"]))
        elif message["event"] == "up":
            self._barrier.up(trial)
            self._starts.done(trial)

    async def _gauge(self) -> None:
        try:
            while True:
                before = time.monotonic()
                await asyncio.sleep(_GAUGE_S)
                self._say(await self.gauges(time.monotonic() - before - _GAUGE_S))
                if self._barrier.completed():
                    await self._open.server.channel.ask("tell", trial="*", name="go")
        except ChannelClosed:  # every trial says so itself
            self.lost.set()
