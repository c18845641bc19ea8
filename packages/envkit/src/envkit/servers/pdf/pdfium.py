# SPDX-License-Identifier: Apache-2.0
"""The only module that touches the PDF library (pypdfium2, not thread-safe: one process a file).

Everything comes out as plain values in one frame: points, origin top left, y growing downwards,
turned so that most text of the page reads from left to right.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2
import pypdfium2.raw as _raw

lib: Any = _raw
_pdfium: Any = pypdfium2

PdfError: type[Exception] = _pdfium.PdfiumError
WRONG_PASSWORD: int = lib.FPDF_ERR_PASSWORD
WHITE = (255, 255, 255)
INVISIBLE_MODE = 3
MAX_PATH_SEGMENTS = 40_000
"""Maps and drawings hold more; a page with tables holds hundreds."""


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


class _Style(NamedTuple):
    quadrant: int
    size: float
    mode: int
    white: bool


class _Glyph(NamedTuple):
    text: str
    left: float
    bottom: float
    right: float
    top: float
    style: _Style
    owner: int


@contextmanager
def opened(path: str, password: str) -> Generator[Any]:
    """The document at host path `path`; raises pypdfium2.PdfiumError with `err_code`."""
    document = _pdfium.PdfDocument(path, password=password or None)
    try:
        if document.get_formtype() in (lib.FORMTYPE_ACRO_FORM, lib.FORMTYPE_XFA_FOREGROUND):
            document.init_forms()
        yield document
    finally:
        document.close()


def read_page(document: Any, index: int) -> Ink:
    """Everything printed on page `index` (from 0)."""
    page = document[index]
    try:
        box = page.get_bbox()
        glyphs = list(_glyphs(page))
        boxes = _boxes(page)
        return _ink(glyphs, boxes, box)
    finally:
        page.close()


def read_fields(document: Any, index: int) -> dict[str, str]:
    """Names and values of the form fields on page `index`; empty when there is no form."""
    if document.formenv is None:
        return {}
    page = document[index]
    try:
        found: dict[str, str] = {}
        for number in range(lib.FPDFPage_GetAnnotCount(page.raw)):
            annotation = lib.FPDFPage_GetAnnot(page.raw, number)
            if lib.FPDFAnnot_GetSubtype(annotation) == lib.FPDF_ANNOT_WIDGET:
                name, value = _field(document.formenv.raw, annotation)
                found[name] = value
            lib.FPDFPage_CloseAnnot(annotation)
        return found
    finally:
        page.close()


def _field(form: Any, annotation: Any) -> tuple[str, str]:
    name = _wide(lib.FPDFAnnot_GetFormFieldName, form, annotation)
    kind = lib.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (lib.FPDF_FORMFIELD_CHECKBOX, lib.FPDF_FORMFIELD_RADIOBUTTON):
        return name, "checked" if lib.FPDFAnnot_IsChecked(form, annotation) else "not checked"
    return name, _wide(lib.FPDFAnnot_GetFormFieldValue, form, annotation)


def _wide(call: Any, form: Any, annotation: Any) -> str:
    """A UTF-16 string that the library writes into a buffer of the size it asks for."""
    size = call(form, annotation, None, 0)
    buffer = (lib.FPDF_WCHAR * max(1, size // 2))()
    call(form, annotation, buffer, size)
    return bytes(buffer)[: max(0, size - 2)].decode("utf-16-le", "replace")


def render_page(document: Any, index: int, side: int) -> Any:
    """Page `index` as a Pillow image whose longer side has `side` pixels, forms included."""
    page = document[index]
    try:
        width, height = page.get_size()
        scale = side / max(width, height, 1.0)
        return page.render(scale=scale, may_draw_forms=True).to_pil()
    finally:
        page.close()


def facts(document: Any) -> dict[str, str]:
    """Title, author and the like; only those that are set."""
    return {key: str(value) for key, value in document.get_metadata_dict().items() if value}


def outline(document: Any) -> list[tuple[int, str, int]]:
    """Bookmarks as (level, title, page from 1; 0 when it leads nowhere)."""
    found: list[tuple[int, str, int]] = []
    for mark in document.get_toc(max_depth=6):
        target = mark.get_dest()
        page = target.get_index() if target else None
        found.append((mark.level, mark.get_title(), 0 if page is None else page + 1))
    return found


def _ink(glyphs: list[_Glyph], boxes: "_Boxes", box: tuple[float, float, float, float]) -> Ink:
    area = max(1.0, (box[2] - box[0]) * (box[3] - box[1]))
    share = min(1.0, boxes.picture_area / area)
    seen = [g for g in glyphs if g.style.mode != INVISIBLE_MODE]
    ocr_layer = len(glyphs) - len(seen) > 4 * len(seen) and share > 0.4
    kept = glyphs if ocr_layer else [g for g in seen if not _is_ghost(g, boxes)]
    kept = [g for g in kept if _on_page(g, box)]
    quadrants = Counter(g.style.quadrant for g in kept)
    main = quadrants.most_common(1)[0][0] if quadrants else 0
    others = sorted(q for q in quadrants if q != main)
    return Ink(
        chars=_chars([g for g in kept if g.style.quadrant == main], main, box),
        turned=[_chars([g for g in kept if g.style.quadrant == q], q, box) for q in others],
        rules=[Rule(*_turn(rule, main, box)) for rule in boxes.rules],
        hidden=sum(1 for g in glyphs if g.text.strip()) - sum(1 for g in kept if g.text.strip()),
        picture_share=share,
        ocr_layer=ocr_layer,
    )


def _chars(
    glyphs: list[_Glyph], quadrant: int, box: tuple[float, float, float, float]
) -> list[Char]:
    return [
        Char(
            g.text, *_turn((g.left, g.bottom, g.right, g.top), quadrant, box), g.style.size, g.owner
        )
        for g in glyphs
    ]


def _turn(
    rect: tuple[float, float, float, float],
    quadrant: int,
    box: tuple[float, float, float, float],
) -> tuple[float, float, float, float]:
    """A rectangle of the page's own frame (y up) as x0, top, x1, bottom of the reading frame."""
    left, bottom, right, top = rect
    if quadrant == 0:
        return left - box[0], box[3] - top, right - box[0], box[3] - bottom
    if quadrant == 1:
        return box[3] - top, box[2] - right, box[3] - bottom, box[2] - left
    if quadrant == 2:
        return box[2] - right, bottom - box[1], box[2] - left, top - box[1]
    return bottom - box[1], left - box[0], top - box[1], right - box[0]


def _on_page(glyph: _Glyph, box: tuple[float, float, float, float]) -> bool:
    x, y = (glyph.left + glyph.right) / 2, (glyph.bottom + glyph.top) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _is_ghost(glyph: _Glyph, boxes: "_Boxes") -> bool:
    """White text with nothing dark behind it."""
    if not glyph.style.white:
        return False
    x, y = (glyph.left + glyph.right) / 2, (glyph.bottom + glyph.top) / 2
    return not any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for b in boxes.backgrounds)


def _pointer_call(function: Any, *arguments: Any) -> Any:
    """The same C function with addresses as plain integers, as caching by object needs."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    return ctypes.CFUNCTYPE(ctypes.c_void_p, *arguments)(address or 0)


_text_object = _pointer_call(lib.FPDFText_GetTextObject, ctypes.c_void_p, ctypes.c_int)

_LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
    0xA0: " ",
    0x02: "-",
}


def _glyphs(page: Any) -> Iterator[_Glyph]:
    """Every character that the page draws; not those that the library adds between them."""
    textpage = lib.FPDFText_LoadPage(page.raw)
    try:
        raw_page = ctypes.cast(textpage, ctypes.c_void_p)
        styles: dict[int, _Style] = {}
        rect = lib.FS_RECTF()
        get_code, get_box = lib.FPDFText_GetUnicode, lib.FPDFText_GetLooseCharBox
        for index in range(lib.FPDFText_CountChars(textpage)):
            address = _text_object(raw_page, index)
            if not address:
                continue
            style = styles.get(address)
            if style is None:
                style = styles[address] = _style(textpage, index, address)
            code = get_code(textpage, index)
            if code == 0xFFFE or not get_box(textpage, index, rect):
                continue
            text = _LIGATURES.get(code) or _character(code)
            yield _Glyph(text, rect.left, rect.bottom, rect.right, rect.top, style, address)
    finally:
        lib.FPDFText_ClosePage(textpage)


def _character(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        return "\N{REPLACEMENT CHARACTER}"
    return chr(code) if code >= 0x20 else " "


def _style(textpage: Any, index: int, address: int) -> _Style:
    held = ctypes.cast(address, lib.FPDF_PAGEOBJECT)
    angle = lib.FPDFText_GetCharAngle(textpage, index)
    mode = lib.FPDFTextObj_GetTextRenderMode(held)
    return _Style(
        quadrant=round(max(0.0, angle) / (math.pi / 2)) % 4,
        size=max(1.0, _size(textpage, index, held)),
        mode=mode,
        white=mode == 0 and _fill(held) == WHITE,
    )


def _size(textpage: Any, index: int, held: Any) -> float:
    """The size on the page: the font's own, scaled by the object's matrix."""
    matrix = lib.FS_MATRIX()
    scale = 1.0
    if lib.FPDFPageObj_GetMatrix(held, matrix):
        scale = math.hypot(matrix.c, matrix.d) or 1.0
    return lib.FPDFText_GetFontSize(textpage, index) * scale


def _fill(held: Any) -> tuple[int, int, int] | None:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not lib.FPDFPageObj_GetFillColor(held, red, green, blue, alpha):
        return None
    return red.value, green.value, blue.value


@dataclass(slots=True)
class _Boxes:
    rules: list[tuple[float, float, float, float]]
    backgrounds: list[tuple[float, float, float, float]]
    picture_area: float = 0.0
    segments: int = 0


IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
type _Matrix = tuple[float, float, float, float, float, float]


def _boxes(page: Any) -> _Boxes:
    """Ruling lines, dark backgrounds and the area of pictures."""
    found = _Boxes([], [])
    count = lib.FPDFPage_CountObjects(page.raw)
    for index in range(count):
        _collect(lib.FPDFPage_GetObject(page.raw, index), IDENTITY, found, 0)
    return found


def _collect(held: Any, matrix: _Matrix, found: _Boxes, depth: int) -> None:
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


def _bounds(held: Any, matrix: _Matrix) -> tuple[float, float, float, float]:
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


def _collect_path(held: Any, matrix: _Matrix, found: _Boxes) -> None:
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
        if mode.value and _fill(held) != WHITE:
            found.backgrounds.append(box)
        if box[2] - box[0] <= THIN or box[3] - box[1] <= THIN:
            found.rules.append(_flattened(box))
        elif stroked.value or len(points) >= 4:
            found.rules += _straight(points)


def _flattened(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = box
    if x1 - x0 <= y1 - y0:
        return (x0 + x1) / 2, y0, (x0 + x1) / 2, y1
    return x0, (y0 + y1) / 2, x1, (y0 + y1) / 2


def _straight(points: list[tuple[float, float]]) -> list[tuple[float, float, float, float]]:
    rules: list[tuple[float, float, float, float]] = []
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
