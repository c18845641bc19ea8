# SPDX-License-Identifier: Apache-2.0
"""What a workbook holds, as plain data that two workbooks can be compared by.

Reads the parts of the file itself: that costs a fraction of what importing a library does.
Formulas are read as text; no cached value is used, since the usual libraries drop them. A file
that is no workbook, or one made to exhaust its reader, is `Unreadable`.
"""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_UNPACKED_BYTES = 10 * 1024 * 1024
MAX_CELLS = 20_000

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_NOTES = "/relationships/comments"

type Snapshot = dict[str, Any]


class Unreadable(Exception):
    """The file cannot be read as a workbook of a reasonable size."""


def snapshot(path: Path) -> Snapshot:
    """Sheets, cells and names of the workbook at `path`; raises `Unreadable`."""
    if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
        raise Unreadable("no file of a reasonable size")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise Unreadable("unpacks to more than it should")
            return _Reader(archive).snapshot()
    except (MemoryError, Unreadable):
        raise
    except Exception as cause:  # a hostile archive or part raises anything
        raise Unreadable(f"{type(cause).__name__}: {cause}") from cause


class _Reader:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._texts: list[str] = []
        self._forms: list[list[object]] = []
        self._cells = 0

    def snapshot(self) -> Snapshot:
        book = "xl/workbook.xml"
        links = self._links(book)
        for target, kind in links.values():
            if kind.endswith("/sharedStrings"):
                self._texts = [_text(item) for item in self._xml(target).iter(f"{_MAIN}si")]
            elif kind.endswith("/styles"):
                self._forms = list(_forms(self._xml(target)))
        root = self._xml(book)
        sheets = list(root.iter(f"{_MAIN}sheet"))
        return {
            "order": [[sheet.get("name"), sheet.get("state", "visible")] for sheet in sheets],
            "sheets": {
                str(sheet.get("name")): self._sheet(links[str(sheet.get(_LINK))][0])
                for sheet in sheets
            },
            "names": {
                str(name.get("name")): "".join((name.text or "").split())
                for name in root.iter(f"{_MAIN}definedName")
            },
        }

    def _xml(self, part: str) -> Element:
        content = self._archive.read(part)
        if b"<!DOCTYPE" in content or b"\0" in content[:64]:
            raise Unreadable(f"{part} is not what a spreadsheet program writes")
        return ElementTree.fromstring(content)

    def _links(self, part: str) -> dict[str, tuple[str, str]]:
        folder, name = posixpath.split(part)
        path = f"{folder}/_rels/{name}.rels"
        if path not in self._archive.namelist():
            return {}
        return {
            str(link.get("Id")): (
                posixpath.normpath(posixpath.join("/", folder, str(link.get("Target"))))[1:],
                str(link.get("Type")),
            )
            for link in self._xml(path)
        }

    def _sheet(self, part: str) -> Snapshot:
        root = self._xml(part)
        pane = root.find(f".//{_MAIN}pane")
        return {
            "cells": dict(self._filled(root)),
            "merged": sorted(str(cell.get("ref")) for cell in root.iter(f"{_MAIN}mergeCell")),
            "freeze": None if pane is None else pane.get("topLeftCell"),
            "notes": {
                str(note.get("ref")): _text(note)
                for target, kind in self._links(part).values()
                if kind.endswith(_NOTES)
                for note in self._xml(target).iter(f"{_MAIN}comment")
            },
        }

    def _filled(self, root: Element) -> Iterator[tuple[str, list[object]]]:
        for cell in root.iter(f"{_MAIN}c"):
            self._cells += 1
            if self._cells > MAX_CELLS:
                raise Unreadable("more cells than there should be")
            content = self._content(cell)
            if content is not None:
                form = self._forms[int(cell.get("s", "0"))] if self._forms else ["#0", False]
                yield str(cell.get("r")), [content, *form]

    def _content(self, cell: Element) -> object:
        formula, value = cell.find(f"{_MAIN}f"), cell.findtext(f"{_MAIN}v")
        if formula is not None:
            return "=" + (formula.text or f"#{formula.get('t')}")
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return _text(cell)
        if value is None or value == "":
            return None
        if kind == "s":
            return self._texts[int(value)]
        if kind == "n":
            return float(value)
        return value == "1" if kind == "b" else value


def _text(item: Element) -> str:
    return "".join(found.text or "" for found in item.iter(f"{_MAIN}t"))


def _forms(styles: Element) -> Iterator[list[object]]:
    """Number format and boldness of each cell format; a built-in format goes by its number."""
    codes = {
        str(form.get("numFmtId")): str(form.get("formatCode"))
        for form in styles.iter(f"{_MAIN}numFmt")
    }
    bold = [_is_bold(font) for font in styles.iterfind(f"{_MAIN}fonts/{_MAIN}font")]
    for form in styles.iterfind(f"{_MAIN}cellXfs/{_MAIN}xf"):
        number = str(form.get("numFmtId", "0"))
        yield [codes.get(number, f"#{number}"), bold[int(form.get("fontId", "0"))]]


def _is_bold(font: Element) -> bool:
    found = font.find(f"{_MAIN}b")
    return found is not None and found.get("val", "1") in ("1", "true")


def value(found: Snapshot, sheet: str, cell: str) -> object:
    """The cell's value or formula text; None where it is empty or its sheet is gone."""
    return found["sheets"].get(sheet, {"cells": {}})["cells"].get(cell, [None])[0]


def is_formula(content: object) -> bool:
    """Whether a cell's content is a formula."""
    return isinstance(content, str) and content.startswith("=")


def same_formula(one: object, other: object) -> bool:
    """Whether two formulas are the same but for blanks and letter case."""
    return _plain(one) == _plain(other)


def _plain(content: object) -> str:
    return re.sub(r"\s", "", str(content)).upper()
