# SPDX-License-Identifier: Apache-2.0
"""The first signal cancels, the second leaves; neither is heard in the middle of a callback."""

import asyncio
import os
import signal

import pytest

from envkit.deadline import within
from envkit.preflight.interrupt import INTERRUPTED, interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_cancels_the_work_which_may_still_answer(number: signal.Signals):
    async def work() -> str:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "a report"
        return "never"

    assert asyncio.run(interruptible(work())) == "a report"


def test_the_second_signal_leaves_at_once_whatever_still_holds_the_work():
    left: list[int] = []

    async def stubborn() -> None:
        gone = asyncio.Event()

        def leave(status: int) -> None:
            left.append(status)
            gone.set()

        async def hold() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                os.kill(os.getpid(), signal.SIGINT)
                await within("second", 20, gone.wait())

        await interruptible(hold(), leave)

    asyncio.run(stubborn())
    assert left == [INTERRUPTED]


def test_signals_are_the_interpreters_again_afterwards():
    async def nothing() -> None: ...

    before = signal.getsignal(signal.SIGTERM)
    asyncio.run(interruptible(nothing()))
    assert signal.getsignal(signal.SIGTERM) is before
