# SPDX-License-Identifier: Apache-2.0
"""Shared by all tests: an event loop whose clock jumps, so that waiting takes no time.

And one process that may be forked: libraries that start threads as they are imported, for others
among the tests, are told not to before that.
"""

import asyncio
import os
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")  # pyarrow's

type Run = Callable[[Coroutine[Any, Any, Any]], Any]


class JumpingClockLoop(asyncio.SelectorEventLoop):
    """Where the real loop would sleep until its next timer, this one moves its clock there.

    Only for coroutines that wait for timers and for each other: nothing outside can wake it, so
    having nothing left to wait for is an error and not a hang.
    """

    def __init__(self) -> None:
        self._now = 1000.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: JumpingClockLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("every task waits for something that no timer will bring")
        self._loop.jump(timeout)
        return ready


@pytest.fixture
def run() -> Run:
    """Run a coroutine on a loop whose clock jumps."""

    def run_on_jumping_clock(coroutine: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=JumpingClockLoop) as runner:
            return runner.run(coroutine)

    return run_on_jumping_clock
