# SPDX-License-Identifier: Apache-2.0
"""Retries with full jitter, over stamina, that keep what failed on the record.

`retry` runs an operation until it succeeds, its fault says that another try is useless
(`Policy.retry`), or the tries are spent; then the last error is raised as it was. A fault nobody
knows is tried once more. What is not idempotent is tried once, whatever its fault says: the caller
states it for every operation, and there is no default to forget. The wait is uniform between 0 and
a bound that doubles, so that what failed together does not come back together, and a slot is held
only during a try: somebody else works while this one waits. An operation that never raises, because
what it returns tells its own fault, is judged by that: ``fault_of`` says how.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import stamina

from envkit.fault import Fault, Owner, Phase, classify

UNKNOWN_TRIES = 2
"""A fault nobody knows may be a hiccup and may be a bug: one more try tells them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often, and how long between."""

    tries: int = 4
    """With the waits below, a few seconds of outage are survived; a longer one is reported."""
    first_s: float = 1.0
    """Bound of the first wait, in seconds: what a box takes to start, so nobody queues for long."""
    most_s: float = 30.0
    """Bound of every wait, in seconds: rate limits of providers count by the minute."""

    def bound(self, number: int) -> float:
        """The longest wait in seconds after try ``number``, counted from 1."""
        return min(self.most_s, self.first_s * 2.0 ** min(number - 1, 60))


DEFAULT_BACKOFF = Backoff()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTry:
    """One try that failed."""

    number: int
    """Counts from 1."""
    fault: Fault
    started_at: float
    """Unix time in seconds."""
    seconds: float
    """How long the try took."""
    wait_s: float | None
    """The wait chosen before the next try; None where there was no next try."""


@dataclass(slots=True)
class Attempts:
    """What it took: filled while the operation runs, complete whichever way it ends."""

    failed: list[FailedTry] = field(default_factory=list[FailedTry])

    @property
    def retried(self) -> int:
        """Tries that another one followed."""
        return sum(each.wait_s is not None for each in self.failed)

    @property
    def unknown(self) -> int:
        """Tries that failed for a reason nobody knows."""
        return sum(each.fault.owner is Owner.UNKNOWN for each in self.failed)


async def retry[T](
    operation: Callable[[], Awaitable[T]],
    *,
    phase: Phase,
    idempotent: bool,
    backoff: Backoff = DEFAULT_BACKOFF,
    attempts: Attempts | None = None,
    slot: asyncio.Semaphore | None = None,
    rng: random.Random | None = None,
    fault_of: Callable[[T], Fault | None] | None = None,
) -> T:
    """Run ``operation`` until it succeeds or another try is useless.

    Pass ``attempts`` to keep the failed tries, ``slot`` to hold one of a limited number of slots
    during each try and none while waiting, and a seeded ``rng`` for waits that can be repeated.
    With ``fault_of`` a result that has a fault is a failed try. Raises what the last try raised,
    or returns what it returned.
    """
    judge = _Judge(phase, backoff if idempotent else Backoff(tries=1), attempts, rng)

    async def tried() -> T:
        judge.begin()
        return _sound(await operation(), fault_of)

    async def in_slot(slot: asyncio.Semaphore) -> T:
        async with slot:
            return await tried()

    once = tried if slot is None else partial(in_slot, slot)
    try:
        return await once()
    except (Exception, asyncio.CancelledError) as error:
        failed = error
    try:
        return await _again(failed, once, judge)
    except _FaultyResult as faulty:
        return faulty.result


async def _again[T](failed: BaseException, once: Callable[[], Awaitable[T]], judge: "_Judge") -> T:
    """Go on after a first try that failed; stamina's own 0.1 ms are spent only then."""
    first = [failed]
    async for attempt in stamina.retry_context(on=judge.wait, attempts=None, timeout=None):
        with attempt:
            if first:
                raise first.pop()
            return await once()
    raise AssertionError("stamina returns or raises")


class _FaultyResult(Exception):
    """A result that tells its own fault, on its way past stamina."""

    def __init__(self, result: Any, fault: Fault) -> None:
        super().__init__(fault.message)
        self.result = result
        self.fault = fault


def _sound[T](result: T, fault_of: Callable[[T], Fault | None] | None) -> T:
    fault = fault_of(result) if fault_of else None
    if fault is not None:
        raise _FaultyResult(result, fault)
    return result


class _Judge:
    """Decides after each failed try, and writes it down."""

    def __init__(
        self,
        phase: Phase,
        backoff: Backoff,
        attempts: Attempts | None,
        rng: random.Random | None,
    ) -> None:
        self._phase = phase
        self._backoff = backoff
        self._attempts = Attempts() if attempts is None else attempts
        self._rng = rng
        self._number = 0
        self._began = (0.0, 0.0)

    def begin(self) -> None:
        """A try starts; time spent queueing for a slot is not its own."""
        self._number += 1
        self._began = (time.time(), time.monotonic())

    def wait(self, error: BaseException) -> bool | float:
        """Seconds to wait before the next try; False for none. A backoff hook of stamina."""
        known = isinstance(error, _FaultyResult)
        fault = error.fault if known else classify(error, self._phase)
        wait_s = self._draw() if self._again(fault) else None
        self._attempts.failed.append(self._failed(fault, wait_s))
        return False if wait_s is None else wait_s

    def _again(self, fault: Fault) -> bool:
        if not fault.policy.retry or self._number >= self._backoff.tries:
            return False
        return fault.owner is not Owner.UNKNOWN or self._attempts.unknown + 1 < UNKNOWN_TRIES

    def _draw(self) -> float:
        self._rng = self._rng or random.Random()
        return self._rng.uniform(0.0, self._backoff.bound(self._number))

    def _failed(self, fault: Fault, wait_s: float | None) -> FailedTry:
        started_at, began = self._began
        seconds = time.monotonic() - began
        return FailedTry(
            number=self._number, fault=fault, started_at=started_at, seconds=seconds, wait_s=wait_s
        )
