# SPDX-License-Identifier: Apache-2.0
"""A clock that is wrong is wrong for one process, however that process asks for the time."""

import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from envkit.preflight.chaos import clocks

JUMP = """
import asyncio
from envkit.deadline import DeadlineExceeded, within
from envkit.preflight.chaos import clocks

async def main():
    waiting = asyncio.ensure_future(within("start", 600, asyncio.Event().wait()))
    await asyncio.sleep(0)
    clocks.jump(601)
    try:
        await waiting
    except DeadlineExceeded as error:
        print(error)

asyncio.run(main())
"""
SKEW = """
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from envkit.preflight.chaos import clocks

class Own(datetime): ...
before, ran = datetime.now(UTC), time.monotonic()
print(clocks.skew({seconds}))
print(round((datetime.now(UTC) - before).total_seconds(), -1))
print(round(time.time() - before.timestamp(), -1))
print(round(time.time_ns() / 1e9 - before.timestamp(), -1))
print(round((Own.now(UTC) - before).total_seconds(), -1), type(Own.now()).__name__)
print(round((datetime.now() - before.astimezone().replace(tzinfo=None)).total_seconds(), -1))
print(time.monotonic() - ran < 60)
"""
PATIENCE_S = 60


def run(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_monotonic_clock_that_jumps_ends_what_was_given_less_time() -> None:
    assert run(JUMP) == ["start did not finish within 600 s"]


@pytest.mark.parametrize("kind", clocks.WRONG_S)
def test_a_wall_clock_is_wrong_by_a_day_for_whoever_asks_it(kind: str) -> None:
    seconds = clocks.WRONG_S[kind]
    effect, *read, own, local, monotonic_is_right = run(SKEW.format(seconds=seconds))
    assert effect.endswith(f"is wrong by {seconds:+.0f} s")
    assert read == [str(seconds)] * 3
    assert own == f"{seconds} Own"
    assert (local, monotonic_is_right) == (str(seconds), "True")


def test_the_clocks_of_this_process_are_right() -> None:
    assert datetime.__dict__["now"].__class__.__name__ == "classmethod_descriptor"
    assert abs(datetime.now(UTC).timestamp() - time.time()) < 60
