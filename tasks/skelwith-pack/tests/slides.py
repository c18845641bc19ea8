# SPDX-License-Identifier: Apache-2.0
"""What a deck holds, as plain data that two decks can be compared by.

A slide has shapes and notes. A shape has a name, a kind, a place, and text, table rows, chart
series or, in a group, shapes of its own. Fonts and colours are left out.
"""

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError
from zipfile import BadZipFile

from parts import Parts, R, Unreadable, opened

MAX_SHAPES = 500

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
SHAPES = {f"{P}{kind}" for kind in ("sp", "grpSp", "graphicFrame", "pic", "cxnSp")}

type Shape = dict[str, Any]
type Deck = list[dict[str, Any]]


def snapshot(path: Path) -> Deck:
    """The slides of the deck at `path`, in their order; raises `Unreadable`."""
    with opened(path) as parts:
        deck = "ppt/presentation.xml"
        links = parts.links(deck)
        ids = [str(slide.get(f"{R}id")) for slide in parts.xml(deck).iter(f"{P}sldId")]
        return [_slide(parts, links[id][0]) for id in ids]


def _slide(parts: Parts, name: str) -> dict[str, Any]:
    links = parts.links(name)
    root = parts.xml(name)
    tree = root.find(f"{P}cSld/{P}spTree")
    if tree is None or len(list(root.iter())) > 100 * MAX_SHAPES:
        raise Unreadable(f"{name} is no slide of a reasonable size")
    notes = [target for target, kind in links.values() if kind == "notesSlide"]
    return {
        "hidden": root.get("show", "1") in ("0", "false"),
        "shapes": [_shape(parts, links, shape) for shape in tree if shape.tag in SHAPES],
        "notes": [_notes(parts.xml(target)) for target in notes],
    }


def _notes(root: Element) -> list[str]:
    """Text of the body, without the slide number and the picture of the slide."""
    for shape in root.iter(f"{P}sp"):
        holder = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
        if holder is not None and holder.get("type") == "body":
            return _paragraphs(shape)
    return []


def _shape(parts: Parts, links: dict[str, tuple[str, str]], shape: Element) -> Shape:
    named = shape.find(f"*/{P}cNvPr")
    found: Shape = {
        "name": None if named is None else named.get("name"),
        "kind": shape.tag.removeprefix(P),
        "place": _place(shape),
    }
    chart, table = next(shape.iter(f"{C}chart"), None), next(shape.iter(f"{A}tbl"), None)
    if shape.tag == f"{P}grpSp":
        found["shapes"] = [_shape(parts, links, inner) for inner in shape if inner.tag in SHAPES]
    elif chart is not None:
        found["chart"] = _chart(parts, links[str(chart.get(f"{R}id"))][0])
    elif table is not None:
        found["rows"] = [
            ["\n".join(_paragraphs(cell)) for cell in row.iter(f"{A}tc")]
            for row in table.iter(f"{A}tr")
        ]
    else:
        found["text"] = _paragraphs(shape)
    return found


def _place(shape: Element) -> list[str | None]:
    for frame in (f"{P}spPr/{A}xfrm", f"{P}grpSpPr/{A}xfrm", f"{P}xfrm"):
        found = shape.find(frame)
        if found is not None:
            off, ext = found.find(f"{A}off"), found.find(f"{A}ext")
            if off is not None and ext is not None:
                return [off.get("x"), off.get("y"), ext.get("cx"), ext.get("cy")]
    return []


def _paragraphs(part: Element) -> list[str]:
    return [
        "".join("\n" if run.tag == f"{A}br" else run.text or "" for run in _runs(paragraph))
        for paragraph in part.iter(f"{A}p")
    ]


def _runs(paragraph: Element) -> list[Element]:
    return [found for found in paragraph.iter() if found.tag in (f"{A}t", f"{A}br")]


def _chart(parts: Parts, name: str) -> dict[str, Any]:
    root = parts.xml(name)
    area = root.find(f"{C}chart/{C}plotArea")
    plots = [] if area is None else [plot for plot in area if plot.tag.endswith("Chart")]
    books = [target for target, kind in parts.links(name).values() if kind == "package"]
    cells = _cells(parts, books[0]) if len(books) == 1 else {}
    title = root.find(f"{C}chart/{C}title")
    return {
        "kinds": [plot.tag.removeprefix(C) for plot in plots],
        "title": [] if title is None else _paragraphs(title),
        "series": [_series(found, cells) for plot in plots for found in plot.iter(f"{C}ser")],
    }


def _series(found: Element, cells: dict[str, float]) -> dict[str, Any]:
    source = found.findtext(f"{C}val/{C}numRef/{C}f") or ""
    return {
        "name": "".join(value.text or "" for value in found.iterfind(f"{C}tx//{C}v")),
        "categories": [point.findtext(f"{C}v") for point in found.iterfind(f"{C}cat//{C}pt")],
        "values": [_number(point.findtext(f"{C}v")) for point in found.iterfind(f"{C}val//{C}pt")],
        "editable": _column(source, cells),
    }


def _column(source: str, cells: dict[str, float]) -> list[float | None]:
    """The numbers behind the series in the embedded workbook."""
    first, _, last = source.rpartition("!")[2].replace("$", "").partition(":")
    column = first.rstrip("0123456789")
    top, bottom = first.removeprefix(column), (last or first).removeprefix(column)
    if not (top.isdecimal() and bottom.isdecimal()) or int(bottom) - int(top) > MAX_SHAPES:
        return []
    return [cells.get(f"{column}{row}") for row in range(int(top), int(bottom) + 1)]


def _cells(parts: Parts, name: str) -> dict[str, float]:
    """Numbers of the embedded workbook's first sheet; none where it is broken."""
    try:
        book = parts.inner(name)
        links = book.links("xl/workbook.xml").values()
        sheet = book.xml(min(target for target, kind in links if kind == "worksheet"))
    except (BadZipFile, KeyError, ParseError, ValueError):
        return {}
    numbers = {
        str(cell.get("r")): _number(cell.findtext(f"{S}v"))
        for cell in sheet.iter(f"{S}c")
        if cell.get("t", "n") == "n"
    }
    return {cell: number for cell, number in numbers.items() if number is not None}


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
