# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM as a wish that a run ends at its next step; a second one ends it at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_wished(told: Callable[[str], None]) -> Generator[Callable[[], bool]]:
    """Gives what says whether somebody wants the run to end."""
    wished = [False]

    def heard(_number: int, _frame: FrameType | None) -> None:
        if wished[0]:
            raise KeyboardInterrupt
        wished[0] = True
        told("stopping after this step, with a checkpoint; once more to stop at once")

    before = {each: signal.signal(each, heard) for each in SIGNALS}
    try:
        yield lambda: wished[0]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
