# SPDX-License-Identifier: Apache-2.0
"""The text inside docx, pptx and xlsx files, piece by piece with its place. For searching only.

Reads the XML parts in place and keeps nothing; external references are never followed and a part
with a document type declaration (the door to entity tricks) is refused.
"""

import re
import zipfile
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree

PART_BYTES = 128 << 20
"""Of one part, unpacked; a larger one is a bomb or of no use to a search."""

type Piece = tuple[str, str]
"""Where (`Sheet1!B2`, `slide 3`, `paragraph 12`) and what."""


class NotReadable(Exception):
    """The file is no office file, or one that cannot be read; the message says why."""


def pieces(suffix: str, file: IO[bytes]) -> Iterator[Piece]:
    """The texts of an office file; raises NotReadable."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield from _READERS[suffix](archive)
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, OSError, RuntimeError) as error:
        raise NotReadable(f"damaged or protected ({type(error).__name__})") from None


def _part(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    if archive.getinfo(name).file_size > PART_BYTES:
        raise NotReadable(f"{name} is too large")
    data = archive.read(name)
    if b"<!DOCTYPE" in data[:4096]:
        raise NotReadable(f"{name} declares a document type")
    return ElementTree.fromstring(data)


def _numbered(archive: zipfile.ZipFile, pattern: str) -> list[tuple[int, str]]:
    found = ((re.fullmatch(pattern, name), name) for name in archive.namelist())
    return sorted((int(match[1]), name) for match, name in found if match)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rsplit("}", 1)[-1]


def _texts(root: ElementTree.Element, block: str, leaf: str) -> Iterator[str]:
    """The text of each `block` element, joined from its `leaf` elements."""
    for element in root.iter():
        if _tag(element) == block:
            text = "".join(part.text or "" for part in element.iter() if _tag(part) == leaf)
            if text.strip():
                yield text


def _docx(archive: zipfile.ZipFile) -> Iterator[Piece]:
    for number, text in enumerate(_texts(_part(archive, "word/document.xml"), "p", "t"), start=1):
        yield f"paragraph {number}", text
    others = re.compile(r"word/(header|footer|footnotes|endnotes|comments)\d*\.xml")
    for name in sorted(filter(others.fullmatch, archive.namelist())):
        for text in _texts(_part(archive, name), "p", "t"):
            yield name.removeprefix("word/").removesuffix(".xml"), text


def _pptx(archive: zipfile.ZipFile) -> Iterator[Piece]:
    archive.getinfo("ppt/presentation.xml")
    for number, name in _numbered(archive, r"ppt/slides/slide(\d+)\.xml"):
        for text in _texts(_part(archive, name), "p", "t"):
            yield f"slide {number}", text
    for number, name in _numbered(archive, r"ppt/notesSlides/notesSlide(\d+)\.xml"):
        for text in _texts(_part(archive, name), "p", "t"):
            yield f"notes {number}", text


def _xlsx(archive: zipfile.ZipFile) -> Iterator[Piece]:
    shared = _shared_strings(archive)
    for title, name in _sheets(archive):
        for cell in _part(archive, name).iter():
            if _tag(cell) == "c" and (text := _cell_text(cell, shared)).strip():
                yield f"{title}!{cell.get('r', '')}", text


def _shared_strings(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    root = _part(archive, "xl/sharedStrings.xml")
    items = (item for item in root if _tag(item) == "si")
    return ["".join(p.text or "" for p in item.iter() if _tag(p) == "t") for item in items]


def _sheets(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    links = _part(archive, "xl/_rels/workbook.xml.rels")
    targets = {link.get("Id"): link.get("Target", "") for link in links}
    for sheet in _part(archive, "xl/workbook.xml").iter():
        if _tag(sheet) != "sheet":
            continue
        key = next((value for name, value in sheet.items() if name.endswith("}id")), "")
        target = targets.get(key, "").lstrip("/")
        name = target if target.startswith("xl/") else f"xl/{target}"
        if "worksheets" in name and name in archive.namelist():
            yield sheet.get("name", ""), name


def _cell_text(cell: ElementTree.Element, shared: list[str]) -> str:
    parts = {_tag(part): part.text or "" for part in cell.iter() if _tag(part) in ("v", "f", "t")}
    value = parts.get("v", parts.get("t", ""))
    if cell.get("t") == "s" and value.isdigit() and int(value) < len(shared):
        value = shared[int(value)]
    return f"{value} (={parts['f']})" if parts.get("f") else value


_READERS = {
    ".docx": _docx,
    ".docm": _docx,
    ".pptx": _pptx,
    ".pptm": _pptx,
    ".xlsx": _xlsx,
    ".xlsm": _xlsx,
}
SUFFIXES = frozenset(_READERS)
