# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM, heard by the loop and never in the middle of its work.

Contract: the first cancels the work, which ends in its own order; the second leaves at once with
status 130. Python's own handler would raise KeyboardInterrupt inside whatever callback runs: a task
that was just being woken is then never woken again, and the loop waits for it without end. What
leaving at once leaves behind ends by itself: the fork server sees its channel close.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Final

INTERRUPTED: Final = 130
"""Exit status: 128 + SIGINT."""


async def interruptible[T](
    work: Coroutine[Any, Any, T], leave: Callable[[int], object] = os._exit
) -> T:
    """What ``work`` returns; it is cancelled by the first signal, and ``leave`` by the second."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    heard = 0

    def hear() -> None:
        nonlocal heard
        heard += 1
        _ = task.cancel() if heard == 1 else leave(INTERRUPTED)

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, hear)
    try:
        return await work
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
