# SPDX-License-Identifier: Apache-2.0
"""A clock that steps, runs at another rate, or is years off.

Durations here are measured by the monotonic clock and do not care; tokens, certificates and
signatures are judged by the wall clock, and fail as if a key were wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from envkit.doctor.types import Finding, Status

APART_S: Final = 0.2
DRIFT: Final = 0.01
"""Clocks that are slewed run 0.05 % off; one in a hundred is a step or a broken host."""
TRIES: Final = 50
OLDEST: Final = datetime(2025, 1, 1, tzinfo=UTC)
"""Before envkit existed."""
FOR: Final = "providers, engines and registries: tokens and certificates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Both clocks at one instant, in seconds."""

    wall: float
    monotonic: float


def read() -> Reading:
    """The closest of some: on a busy machine this process may stand still between two clocks."""
    before_after = [(time.monotonic(), time.time(), time.monotonic()) for _ in range(TRIES)]
    before, wall, after = min(before_after, key=lambda each: each[2] - each[0])
    return Reading(wall=wall, monotonic=(before + after) / 2)


def examine(
    reader: Callable[[], Reading] = read, wait: Callable[[float], None] = time.sleep
) -> Iterator[Finding]:
    """The wall clock, and how it runs against the monotonic one."""
    first = reader()
    wait(APART_S)
    yield from judge(first, reader(), zone())


def judge(first: Reading, second: Reading, zone: str) -> Iterator[Finding]:
    """What two readings say."""
    now = datetime.fromtimestamp(second.wall, UTC)
    old = now < OLDEST
    yield Finding(
        name="clock",
        status=Status.FAIL if old else Status.OK,
        text=f"{now:%Y-%m-%d %H:%M:%S} UTC, local time {zone}",
        fix="set it: timedatectl set-ntp true, or date -s" if old else "",
        needed_for=FOR,
    )
    passed = second.monotonic - first.monotonic
    off = (second.wall - first.wall - passed) / passed if passed > 0 else 0.0
    drifts = abs(off) > DRIFT
    yield Finding(
        name="clock rate",
        status=Status.WARN if drifts else Status.OK,
        text=f"the wall clock {'ran' if drifts else 'runs'} {off:+.2%} against the monotonic one "
        f"over {passed * 1000:.0f} ms",
        fix="let one service set the clock, and slew rather than step it" if drifts else "",
        needed_for=FOR,
    )


def zone() -> str:
    """``CET (UTC+01:00)``."""
    here = datetime.now(UTC).astimezone()
    return f"{here.tzname()} ({here:UTC%z})"
