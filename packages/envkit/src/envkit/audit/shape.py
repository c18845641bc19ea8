# SPDX-License-Identifier: Apache-2.0
"""Look into JSON of unknown shape without an exception and without a guess.

Each function answers with an empty value of the asked type when the value is of another type;
a reader that must refuse a shape checks for it itself.
"""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether it is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a JSON array."""
    return isinstance(value, list)


def mapping(value: object) -> dict[str, Any]:
    """``value`` when it is an object, else an empty one."""
    return value if is_object(value) else {}


def sequence(value: object) -> list[Any]:
    """``value`` when it is an array, else an empty one."""
    return value if is_array(value) else []


def string(value: object) -> str:
    """``value`` when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def integer(value: object) -> int | None:
    """``value`` when it is an integer (booleans are not), else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: object) -> float | None:
    """``value`` as a finite float when it is a number (booleans are not), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if result - result == 0 else None
