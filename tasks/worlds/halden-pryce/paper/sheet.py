# SPDX-License-Identifier: Apache-2.0
"""Pages: one column, two columns, landscape; headings, paragraphs and letterheads on them.

reportlab's invariant mode leaves out the clock and the random document id.
"""

from collections.abc import Sequence
from pathlib import Path

from facts.firm import ADDRESS, LEGAL_NAME, PHONE
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    FrameBreak,
    PageTemplate,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
)

STYLES = getSampleStyleSheet()
BODY = ParagraphStyle("body", parent=STYLES["BodyText"], fontSize=10, leading=13.5, spaceAfter=6)
SMALL = ParagraphStyle("small", parent=BODY, fontSize=8.5, leading=11)
MARGIN, GUTTER, HEAD = 54, 22, 74
"""Points: page margin, space between columns, height of the heading above them."""


def heading(text: str) -> Paragraph:
    """The title of a document."""
    return Paragraph(text, STYLES["Heading1"])


def subheading(text: str) -> Paragraph:
    """The title of a section."""
    return Paragraph(text, STYLES["Heading4"])


def body(text: str) -> Paragraph:
    """A paragraph."""
    return Paragraph(text, BODY)


def small(text: str) -> Paragraph:
    """A paragraph in small print."""
    return Paragraph(text, SMALL)


def gap(points: float = 10) -> Spacer:
    """Empty space."""
    return Spacer(1, points)


def sections(parts: Sequence[tuple[str, str]]) -> list[Flowable]:
    """Title and paragraph of each section."""
    return [flowable for title, text in parts for flowable in (subheading(title), body(text))]


def letterhead() -> list[Flowable]:
    """The firm's name and address."""
    return [subheading(LEGAL_NAME), small(", ".join((*ADDRESS, PHONE))), gap()]


def one_column(path: Path, title: str, parts: Sequence[Flowable], *, wide: bool = False) -> None:
    """Write a document of as many pages as its parts need; `wide` lays the paper on its side."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = landscape(A4) if wide else A4
    document = SimpleDocTemplate(
        str(path),
        pagesize=size,
        invariant=1,
        title=title,
        author=LEGAL_NAME,
        leftMargin=MARGIN,
        rightMargin=MARGIN,
        topMargin=MARGIN,
        bottomMargin=MARGIN,
    )
    document.build(list(parts))


def two_columns(
    path: Path,
    title: str,
    head: Sequence[Flowable],
    left: Sequence[Flowable],
    right: Sequence[Flowable],
) -> None:
    """Write one page: a heading across it, and two columns of prose."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = BaseDocTemplate(str(path), pagesize=A4, invariant=1, title=title, author=LEGAL_NAME)
    document.addPageTemplates([PageTemplate(id="two", frames=_frames())])
    document.build([*head, FrameBreak(), *left, FrameBreak(), *right])


def _frames() -> list[Frame]:
    width, height = A4
    column = (width - 2 * MARGIN - GUTTER) / 2
    tall = height - 2 * MARGIN - HEAD
    return [
        Frame(MARGIN, height - MARGIN - HEAD, width - 2 * MARGIN, HEAD, id="head"),
        Frame(MARGIN, MARGIN, column, tall, id="left"),
        Frame(MARGIN + column + GUTTER, MARGIN, column, tall, id="right"),
    ]
