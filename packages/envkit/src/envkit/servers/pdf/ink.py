# SPDX-License-Identifier: Apache-2.0
"""What is printed on one page, in one frame.

Points, origin top left, y growing downwards, turned so that most text of the page reads from left
to right. Text that a reader cannot see is left out and counted.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from envkit.servers.pdf.glyphs import Glyph, glyphs
from envkit.servers.pdf.ruling import Box, Boxes, boxes

INVISIBLE_MODE = 3
OCR_SHARE = 0.4
"""Of the page: invisible text over a picture this large is the work of OCR."""


class Char(NamedTuple):
    """One visible character."""

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    size: float
    owner: int
    """The text object that drew it."""


class Rule(NamedTuple):
    """A straight horizontal or vertical line, possibly the edge of a box."""

    x0: float
    top: float
    x1: float
    bottom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """What is printed on one page."""

    chars: list[Char]
    turned: list[list[Char]]
    """Characters of other directions, each group upright in a frame of its own."""
    rules: list[Rule]
    hidden: int
    """Characters left out: invisible, white on white, or off the page."""
    picture_share: float
    """Part of the page that images cover, 0 to 1."""
    ocr_layer: bool
    """The text is an invisible layer over a picture, as OCR writes it."""


def read_page(document: Any, index: int) -> Ink:
    """Everything printed on page `index` (from 0)."""
    page = document[index]
    try:
        box = page.get_bbox()
        written = list(glyphs(page))
        drawn = boxes(page)
        return _ink(written, drawn, box)
    finally:
        page.close()


def _ink(written: list[Glyph], drawn: Boxes, box: Box) -> Ink:
    share = min(1.0, drawn.picture_area / max(1.0, (box[2] - box[0]) * (box[3] - box[1])))
    seen = [glyph for glyph in written if glyph.style.mode != INVISIBLE_MODE]
    ocr_layer = len(written) - len(seen) > 4 * len(seen) and share > OCR_SHARE
    kept = written if ocr_layer else [g for g in seen if not _is_ghost(g, drawn)]
    kept = [glyph for glyph in kept if _on_page(glyph, box)]
    quadrants = Counter(glyph.style.quadrant for glyph in kept)
    main = quadrants.most_common(1)[0][0] if quadrants else 0
    return Ink(
        chars=_chars(kept, main, box),
        turned=[_chars(kept, quadrant, box) for quadrant in sorted(quadrants) if quadrant != main],
        rules=[Rule(*_turn(rule, main, box)) for rule in drawn.rules],
        hidden=_printed(written) - _printed(kept),
        picture_share=share,
        ocr_layer=ocr_layer,
    )


def _printed(some: list[Glyph]) -> int:
    return sum(1 for glyph in some if glyph.text.strip())


def _chars(some: list[Glyph], quadrant: int, box: Box) -> list[Char]:
    """Those of one reading direction, in its frame."""
    return [
        Char(
            g.text, *_turn((g.left, g.bottom, g.right, g.top), quadrant, box), g.style.size, g.owner
        )
        for g in some
        if g.style.quadrant == quadrant
    ]


def _turn(
    rect: Box,
    quadrant: int,
    box: Box,
) -> Box:
    """A rectangle of the page's own frame (y up) as x0, top, x1, bottom of the reading frame."""
    left, bottom, right, top = rect
    if quadrant == 0:
        return left - box[0], box[3] - top, right - box[0], box[3] - bottom
    if quadrant == 1:
        return box[3] - top, box[2] - right, box[3] - bottom, box[2] - left
    if quadrant == 2:
        return box[2] - right, bottom - box[1], box[2] - left, top - box[1]
    return bottom - box[1], left - box[0], top - box[1], right - box[0]


def _on_page(glyph: Glyph, box: Box) -> bool:
    x, y = (glyph.left + glyph.right) / 2, (glyph.bottom + glyph.top) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _is_ghost(glyph: Glyph, drawn: Boxes) -> bool:
    """White text with nothing dark behind it."""
    if not glyph.style.white:
        return False
    x, y = (glyph.left + glyph.right) / 2, (glyph.bottom + glyph.top) / 2
    return not any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for b in drawn.backgrounds)
