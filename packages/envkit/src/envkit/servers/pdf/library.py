# SPDX-License-Identifier: Apache-2.0
"""The PDF library (pypdfium2), opened and asked about whole documents and pages.

Not thread-safe: one process a file. Together with `glyphs` and `ruling`, which read characters
and lines, this is the only module that touches it.
"""

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pypdfium2
import pypdfium2.raw as _raw

lib: Any = _raw
_pdfium: Any = pypdfium2

PdfError: type[Exception] = _pdfium.PdfiumError
WRONG_PASSWORD: int = lib.FPDF_ERR_PASSWORD
HEADER_WITHIN = 1024
"""Bytes: a PDF says so near its start."""
SMALLEST = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R
/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj
4 0 obj<</Length 37>>stream
BT /F 12 Tf 20 100 Td (warm) Tj ET
endstream endobj
trailer<</Root 1 0 R>>
%%EOF
"""
"""The smallest document with a word in it."""


@contextmanager
def opened(source: str | bytes, password: str) -> Generator[Any]:
    """The document at a host path or in memory; raises pypdfium2.PdfiumError with `err_code`."""
    document = _pdfium.PdfDocument(source, password=password or None)
    try:
        if document.get_formtype() in (lib.FORMTYPE_ACRO_FORM, lib.FORMTYPE_XFA_FOREGROUND):
            document.init_forms()
        yield document
    finally:
        document.close()


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


def fill_of(held: Any) -> tuple[int, int, int] | None:
    """The fill colour of a page object; None where it has none of its own."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not lib.FPDFPageObj_GetFillColor(held, red, green, blue, alpha):
        return None
    return red.value, green.value, blue.value
