# SPDX-License-Identifier: Apache-2.0
"""Parts on top of each other, a column a step: their shares, or their counts.

Contract: pure; drawn as `rltrain.track.chart` draws. Where there are more steps than columns, a
column is of several steps: shares of their sums, means of their counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from envkit.preflight.markup import Html, el
from rltrain.track.chart import Frame, Series, figure, frame_of, grid, labels
from rltrain.track.scale import LARGEST, ticks, usual

COLUMNS: Final = 180
"""At most; on half a row they are two pixels wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One drawing."""

    title: str
    unit: str
    steps: Sequence[int]
    parts: Sequence[Series]
    """From the bottom upwards; what was not measured counts for nothing."""
    shares: bool = False
    """Whether every column is as high as all, in percent."""
    wide: bool = False
    height: int = 190


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One or several steps."""

    first: int
    last: int
    parts: Sequence[float]
    """How high each is."""


def stacked(stack: Stack) -> Html:
    """The parts under their title."""
    made = columns(stack)
    size = (stack.wide, stack.height)
    up = ticks([100.0] if stack.shares else [sum(column.parts) for column in made])
    frame = frame_of(stack.steps, up, size, usual(stack.steps) / 2)
    there = [n for n in range(len(stack.parts)) if any(column.parts[n] for column in made)]
    edges = list(accumulate(made[-1].parts, initial=0.0))
    middles = [frame.y.at((edges[n] + edges[n + 1]) / 2) for n in there]
    kinds = [stack.parts[n] for n in there]
    bars = [(_bars(made, n, frame, usual(stack.steps) / 2), stack.parts[n].colour) for n in there]
    return figure(
        stack.title,
        stack.unit,
        size,
        grid(frame),
        [el("path", d=path, class_=f"part {colour}") for path, colour in bars],
        labels([(k.name, k.colour, y) for k, y in zip(kinds, middles, strict=True)], frame),
    )


def columns(stack: Stack) -> list[Column]:
    """How high each part of each column is."""
    size = -(-len(stack.steps) // COLUMNS)
    return [_column(stack, slice(n, n + size)) for n in range(0, len(stack.steps), size)]


def _column(stack: Stack, some: slice) -> Column:
    steps = stack.steps[some]
    sums = [
        sum(min(max(0.0, value or 0.0), LARGEST) for value in part.values[some])
        for part in stack.parts
    ]
    whole = sum(sums) / 100 if stack.shares else len(steps)
    parts = [each / whole if whole else 0.0 for each in sums]
    return Column(first=steps[0], last=steps[-1], parts=parts)


def _bars(made: Sequence[Column], part: int, frame: Frame, half: float) -> str:
    """One path of all columns of a part."""
    found: list[str] = []
    for column in made:
        edges = list(accumulate(column.parts, initial=0.0))
        top, bottom = frame.y.at(edges[part + 1]), frame.y.at(edges[part])
        left, right = frame.x.at(column.first - half), frame.x.at(column.last + half)
        if bottom > top:
            found.append(f"M{left:.1f} {bottom:.1f}H{right:.1f}V{top:.1f}H{left:.1f}Z")
    return " ".join(found)
