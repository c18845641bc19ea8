# SPDX-License-Identifier: Apache-2.0
"""The tables of a Word document, as rows of texts."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from parts import Unreadable, opened

MAX_ELEMENTS = 50_000

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

type Table = list[list[str]]


def tables(path: Path) -> list[Table]:
    """Every table of the document's body, outermost first; raises `Unreadable`."""
    with opened(path) as parts:
        (name,) = [n for n, kind in parts.links("").values() if kind == "officeDocument"]
        root = parts.xml(name)
        if len(list(root.iter())) > MAX_ELEMENTS:
            raise Unreadable("longer than it should be")
        return [
            [[_text(cell) for cell in row.iterfind(f"{W}tc")] for row in table.iterfind(f"{W}tr")]
            for table in root.iter(f"{W}tbl")
        ]


def _text(cell: Element) -> str:
    lines = ("".join(_runs(paragraph)) for paragraph in cell.iter(f"{W}p"))
    return " ".join(" ".join(lines).split())


def _runs(paragraph: Element) -> Iterator[str]:
    for found in paragraph.iter():
        if found.tag == f"{W}t":
            yield found.text or ""
        elif found.tag in (f"{W}tab", f"{W}br"):
            yield " "
