# SPDX-License-Identifier: Apache-2.0
"""The straight lines, the backgrounds and the pictures of a page, also inside form objects.

Boxes are in the page's own frame: points, y growing upwards.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from envkit.servers.pdf.library import fill_of, lib

WHITE = (255, 255, 255)
MAX_PATH_SEGMENTS = 40_000
"""Maps and drawings hold more; a page with tables holds hundreds."""

type Box = tuple[float, float, float, float]
"""left, bottom, right, top"""


@dataclass(slots=True)
class Boxes:
    """What a page draws besides text."""

    rules: list[Box] = field(default_factory=list[Box])
    backgrounds: list[Box] = field(default_factory=list[Box])
    picture_area: float = 0.0
    segments: int = 0


IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
type _Matrix = tuple[float, float, float, float, float, float]


def boxes(page: Any) -> Boxes:
    """Ruling lines, dark backgrounds and the area of pictures."""
    found = Boxes()
    count = lib.FPDFPage_CountObjects(page.raw)
    for index in range(count):
        _collect(lib.FPDFPage_GetObject(page.raw, index), IDENTITY, found, 0)
    return found


def _collect(held: Any, matrix: _Matrix, found: Boxes, depth: int) -> None:
    kind = lib.FPDFPageObj_GetType(held)
    if kind == lib.FPDF_PAGEOBJ_PATH:
        _collect_path(held, _times(_matrix_of(held), matrix), found)
    elif kind == lib.FPDF_PAGEOBJ_IMAGE:
        box = _bounds(held, matrix)
        found.picture_area += (box[2] - box[0]) * (box[3] - box[1])
        found.backgrounds.append(box)
    elif kind == lib.FPDF_PAGEOBJ_FORM and depth < 8:
        inner = _times(_matrix_of(held), matrix)
        for index in range(max(0, lib.FPDFFormObj_CountObjects(held))):
            _collect(lib.FPDFFormObj_GetObject(held, index), inner, found, depth + 1)


def _matrix_of(held: Any) -> _Matrix:
    m = lib.FS_MATRIX()
    if not lib.FPDFPageObj_GetMatrix(held, m):
        return IDENTITY
    return m.a, m.b, m.c, m.d, m.e, m.f


def _times(m: _Matrix, n: _Matrix) -> _Matrix:
    return (
        m[0] * n[0] + m[1] * n[2],
        m[0] * n[1] + m[1] * n[3],
        m[2] * n[0] + m[3] * n[2],
        m[2] * n[1] + m[3] * n[3],
        m[4] * n[0] + m[5] * n[2] + n[4],
        m[4] * n[1] + m[5] * n[3] + n[5],
    )


def _apply(m: _Matrix, x: float, y: float) -> tuple[float, float]:
    return m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5]


def _bounds(held: Any, matrix: _Matrix) -> Box:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not lib.FPDFPageObj_GetBounds(held, left, bottom, right, top):
        return 0.0, 0.0, 0.0, 0.0
    corners = [
        _apply(matrix, x, y) for x in (left.value, right.value) for y in (bottom.value, top.value)
    ]
    xs, ys = [c[0] for c in corners], [c[1] for c in corners]
    return min(xs), min(ys), max(xs), max(ys)


THIN = 2.5
"""A filled box no thicker than this is a line."""


def _collect_path(held: Any, matrix: _Matrix, found: Boxes) -> None:
    """Straight segments of a path: stroked ones are rules, the edges of a filled box too."""
    mode, stroked = ctypes.c_int(), ctypes.c_int()
    if not lib.FPDFPath_GetDrawMode(held, mode, stroked) or not (mode.value or stroked.value):
        return
    count = lib.FPDFPath_CountSegments(held)
    found.segments += max(0, count)
    if found.segments > MAX_PATH_SEGMENTS:
        return
    for points in _subpaths(held, count, matrix):
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        box = (min(xs), min(ys), max(xs), max(ys))
        if mode.value and fill_of(held) != WHITE:
            found.backgrounds.append(box)
        if box[2] - box[0] <= THIN or box[3] - box[1] <= THIN:
            found.rules.append(_flattened(box))
        elif stroked.value or len(points) >= 4:
            found.rules += _straight(points)


def _flattened(box: Box) -> Box:
    x0, y0, x1, y1 = box
    if x1 - x0 <= y1 - y0:
        return (x0 + x1) / 2, y0, (x0 + x1) / 2, y1
    return x0, (y0 + y1) / 2, x1, (y0 + y1) / 2


def _straight(points: list[tuple[float, float]]) -> list[Box]:
    rules: list[Box] = []
    for (ax, ay), (bx, by) in pairwise(points):
        if abs(ax - bx) <= 0.5 or abs(ay - by) <= 0.5:
            rules.append((min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)))
    return rules


def _subpaths(held: Any, count: int, matrix: _Matrix) -> Iterator[list[tuple[float, float]]]:
    points: list[tuple[float, float]] = []
    x, y = ctypes.c_float(), ctypes.c_float()
    for index in range(count):
        segment = lib.FPDFPath_GetPathSegment(held, index)
        if not lib.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        if lib.FPDFPathSegment_GetType(segment) == lib.FPDF_SEGMENT_MOVETO and points:
            yield points
            points = []
        points.append(_apply(matrix, x.value, y.value))
        if lib.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if points:
        yield points
