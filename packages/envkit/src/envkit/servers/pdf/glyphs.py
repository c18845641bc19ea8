# SPDX-License-Identifier: Apache-2.0
"""Every character that a page draws, with the style of the text object that drew it.

Boxes are in the page's own frame: points, y growing upwards.
"""

import ctypes
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from envkit.servers.pdf.library import fill_of, lib

WHITE = (255, 255, 255)


class Style(NamedTuple):
    """What all characters of one text object share."""

    quadrant: int
    """Quarter turns of the reading direction."""
    size: float
    mode: int
    """Render mode; 3 draws nothing."""
    white: bool


class Glyph(NamedTuple):
    """One character."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    style: Style
    owner: int
    """The text object that drew it."""


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


def glyphs(page: Any) -> Iterator[Glyph]:
    """Every character that the page draws; not those that the library adds between them."""
    textpage = lib.FPDFText_LoadPage(page.raw)
    try:
        raw_page = ctypes.cast(textpage, ctypes.c_void_p)
        styles: dict[int, Style] = {}
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
            yield Glyph(text, rect.left, rect.bottom, rect.right, rect.top, style, address)
    finally:
        lib.FPDFText_ClosePage(textpage)


def _character(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        return "\N{REPLACEMENT CHARACTER}"
    return chr(code) if code >= 0x20 else " "


def _style(textpage: Any, index: int, address: int) -> Style:
    held = ctypes.cast(address, lib.FPDF_PAGEOBJECT)
    angle = lib.FPDFText_GetCharAngle(textpage, index)
    mode = lib.FPDFTextObj_GetTextRenderMode(held)
    return Style(
        quadrant=round(max(0.0, angle) / (math.pi / 2)) % 4,
        size=max(1.0, _size(textpage, index, held)),
        mode=mode,
        white=mode == 0 and fill_of(held) == WHITE,
    )


def _size(textpage: Any, index: int, held: Any) -> float:
    """The size on the page: the font's own, scaled by the object's matrix."""
    matrix = lib.FS_MATRIX()
    scale = 1.0
    if lib.FPDFPageObj_GetMatrix(held, matrix):
        scale = math.hypot(matrix.c, matrix.d) or 1.0
    return lib.FPDFText_GetFontSize(textpage, index) * scale
