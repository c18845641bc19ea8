# SPDX-License-Identifier: Apache-2.0
"""One page as text, and what kind of page it is."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from envkit.servers.pdf.columns import blocks
from envkit.servers.pdf.ink import Char, Ink, read_page
from envkit.servers.pdf.library import read_fields
from envkit.servers.pdf.render import render
from envkit.servers.pdf.tables import MERGED, Table, tables
from envkit.servers.pdf.words import Word, single, words


class Kind(StrEnum):
    """Why a page reads as it does."""

    TEXT = "text"
    SCAN = "scan"
    """Pictures and no text."""
    BLANK = "blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The text of a page with its layout."""

    kind: Kind
    text: str


def laid_out(raw: Any, index: int) -> str:
    """Page `index` (from 0) of the library's document, packed as it is remembered."""
    laid = lay_out(read_page(raw, index), read_fields(raw, index))
    return f"{laid.kind}\0{laid.text}"


def unpacked(packed: str) -> PageText:
    """What `laid_out` packed."""
    kind, _, text = packed.partition("\0")
    return PageText(kind=Kind(kind), text=text)


def lay_out(ink: Ink, fields: dict[str, str]) -> PageText:
    """Tables first (they become one block each), then columns, then text turned otherwise."""
    found = words(single(ink.chars))
    ruled = tables(ink.rules, found)
    body = [word for word in found if not any(_inside(word, table) for table in ruled)]
    body += [_standing(table) for table in ruled]
    parts = [render(block) for block in blocks(body)]
    parts += [f"[turned text]\n{_plain(chars)}" for chars in ink.turned]
    if fields:
        parts.append("[form fields]\n" + "\n".join(f"{k}: {v}" for k, v in fields.items()))
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        kind = Kind.SCAN if ink.picture_share > 0.05 else Kind.BLANK
        return PageText(kind=kind, text="")
    return PageText(kind=Kind.TEXT, text=text + _notes(ink, text))


def _inside(word: Word, table: Table) -> bool:
    x = (word.x0 + word.x1) / 2
    return table.x0 <= x <= table.x1 and table.top <= word.middle <= table.bottom


def _standing(table: Table) -> Word:
    """The table as one wide word at the height of its first line."""
    height = min(10.0, table.bottom - table.top)
    return Word(
        text="",
        x0=table.x0,
        top=table.top,
        x1=table.x1,
        bottom=table.top + height,
        table=table.pipes(),
    )


def _plain(chars: list[Char]) -> str:
    return render(words(single(chars)))


def _notes(ink: Ink, text: str) -> str:
    notes: list[str] = []
    if ink.ocr_layer:
        notes.append("[text from an OCR layer over a picture: it may hold reading errors]")
    if ink.hidden:
        notes.append(f"[{ink.hidden} invisible or off-page characters left out]")
    if f"| {MERGED}" in text:
        notes.append(f"[{MERGED.strip()} repeats a merged cell]")
    return "".join(f"\n\n{note}" for note in notes)
