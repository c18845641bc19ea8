# SPDX-License-Identifier: Apache-2.0
"""What the checks are made of: a problem is a field and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from envkit.trajectory.types import Kind, Segment, Stream

type Problem = tuple[str, str]


def at(field: str) -> str:
    """A field of the stream."""
    return f"episode.stream.{field}"


def segments_of(stream: Stream, kind: Kind) -> list[Segment]:
    """Its segments of one kind."""
    return [each for each in stream.segments if each.kind is kind]


def amounts(where: str, record: object, *names: str) -> Iterator[Problem]:
    """Amounts and seconds: finite and not below 0."""
    for name in names:
        value = getattr(record, name)
        if not (math.isfinite(value) and value >= 0):
            yield f"{where}.{name}", f"is {value}"


def is_unicode(text: str) -> bool:
    """Whether a file can hold it."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def first(odd: Any, problem: str) -> str:
    """A problem of tokens, with the first that has it."""
    return f"{problem}: token {int(np.argmax(odd))}"
