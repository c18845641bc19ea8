# SPDX-License-Identifier: Apache-2.0
"""A run over time as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from envkit.preflight.types import Course, Lane, Reading


def to_json(course: Course) -> dict[str, Any]:
    """Columns rather than rows: a reading is a place in each of four lists."""
    return {
        "at_s": [each.at_s for each in course.readings],
        "live": [each.live for each in course.readings],
        "memory_mib": [each.memory_mib for each in course.readings],
        "stall_ms": [each.stall_ms for each in course.readings],
        "barriers_s": list(course.barriers_s),
        "trials_left_out": course.left_out,
        "lanes": [asdict(lane) for lane in course.lanes],
    }


def from_json(told: Mapping[str, Any]) -> Course:
    """Read back :func:`to_json`.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    columns = zip(told["at_s"], told["live"], told["memory_mib"], told["stall_ms"], strict=True)
    return Course(
        readings=tuple(
            Reading(at_s=at, live=live, memory_mib=memory, stall_ms=stall)
            for at, live, memory, stall in columns
        ),
        lanes=tuple(
            Lane(
                trial=lane["trial"],
                at_s=tuple(lane["at_s"]),
                phases=tuple(lane["phases"]),
                faults=tuple((at, code) for at, code in lane["faults"]),
            )
            for lane in told["lanes"]
        ),
        left_out=told["trials_left_out"],
        barriers_s=tuple(told["barriers_s"]),
    )
