# SPDX-License-Identifier: Apache-2.0
"""Blocks to text on a character grid: wide gaps keep their place, tables are rows of pipes."""

from collections.abc import Sequence
from statistics import median

from envkit.servers.pdf.words import Line, Word, in_reading_order, lines

TOUCHING = 0.1
"""Of the height: words closer than this were one word in another font."""
GRID_GAP = 1.6
"""Of a character's width: a wider gap is kept in place, a narrower one is one space."""
PARAGRAPH = 2.2
"""Of the height: a larger step down starts a paragraph."""


def render(block: Sequence[Word]) -> str:
    """The text of one block."""
    plain = [word for word in block if not word.table]
    width = median((w.x1 - w.x0) / max(1, len(w.text)) for w in plain) if plain else 5.0
    left = min((word.x0 for word in block), default=0.0)
    out: list[str] = []
    last: Line | None = None
    for line in lines(block):
        if last and line.middle - last.middle > PARAGRAPH * line.height:
            out.append("")
        text = _on_grid([w for w in line.words if not w.table], left, max(width, 1.0))
        out += [part for part in (text, *(w.table for w in line.words if w.table)) if part]
        last = line
    return "\n".join(out)


def _on_grid(row: list[Word], left: float, width: float) -> str:
    text = ""
    edge = left
    for word in in_reading_order(row):
        gap = abs(word.x0 - edge) if text else word.x0 - left
        if gap > GRID_GAP * width:
            text += " " * max(round((word.x0 - left) / width) - len(text), 1 if text else 0)
        elif text and gap > TOUCHING * word.height:
            text += " "
        text += word.text
        edge = word.x1
    return text.rstrip()
