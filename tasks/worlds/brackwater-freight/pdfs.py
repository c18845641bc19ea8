# SPDX-License-Identifier: Apache-2.0
"""The PDF files: a two-column note, a single-column draft, and ruled tables.

reportlab's invariant mode leaves out the clock and the random document id.
"""

from collections.abc import Sequence
from pathlib import Path

import facts
import notes
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
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
    Table,
    TableStyle,
)

STYLES = getSampleStyleSheet()
BODY = ParagraphStyle("body", parent=STYLES["BodyText"], fontSize=9.5, leading=12.5, spaceAfter=6)
MARGIN, GUTTER, HEAD = 54, 22, 70
"""Points: page margin, space between the columns, height of the heading above them."""


def write(drive: Path) -> None:
    """Write every PDF below the drive."""
    _policy(drive / f"policies/{facts.POLICY}_adjusted_ebitda.pdf")
    _draft(drive / f"policies/{facts.DRAFT_POLICY}_adjusted_ebitda_draft.pdf")
    _results(drive / "results/segment_results_2025.pdf")
    _tariff(drive / "planning/toll_tariff_2026.pdf")


def _policy(path: Path) -> None:
    width, height = A4
    column = (width - 2 * MARGIN - GUTTER) / 2
    tall = height - 2 * MARGIN - HEAD
    frames = [
        Frame(MARGIN, height - MARGIN - HEAD, width - 2 * MARGIN, HEAD, id="head"),
        Frame(MARGIN, MARGIN, column, tall, id="left"),
        Frame(MARGIN + column + GUTTER, MARGIN, column, tall, id="right"),
    ]
    document = BaseDocTemplate(str(path), pagesize=A4, invariant=1, title=facts.POLICY)
    document.addPageTemplates([PageTemplate(id="two", frames=frames)])
    head = [
        Paragraph(f"Finance note {facts.POLICY}: adjusted EBITDA", STYLES["Heading1"]),
        Paragraph(f"{facts.FIRM}, Group Finance. Final. In force from 1 January 2025.", BODY),
    ]
    sections = notes.sections(notes.IN_FORCE)
    left, right = _paragraphs(sections[:4]), _paragraphs(sections[4:])
    document.build([*head, FrameBreak(), *left, FrameBreak(), *right])


def _draft(path: Path) -> None:
    head = [
        Paragraph(f"Finance note {facts.DRAFT_POLICY}: adjusted EBITDA", STYLES["Heading1"]),
        Paragraph(f"{facts.FIRM}, Group Finance. Draft for comment, 5 May 2025.", BODY),
    ]
    _simple(path, [*head, *_paragraphs(notes.sections(notes.DRAFT))], facts.DRAFT_POLICY)


def _paragraphs(sections: Sequence[tuple[str, str]]) -> list[Flowable]:
    parts: list[Flowable] = []
    for title, text in sections:
        parts += [Paragraph(title, STYLES["Heading4"]), Paragraph(text, BODY)]
    return parts


def _results(path: Path) -> None:
    header = ["EUR thousand", *facts.SEGMENTS, "Group"]
    rows = [
        [label, *(_amount(value) for value in values), _amount(facts.group(label))]
        for label, values in facts.RESULTS.items()
    ]
    parts = [
        Paragraph("Segment results, full year 2025", STYLES["Heading1"]),
        Paragraph(f"{facts.FIRM}, Group Finance. Audited.", BODY),
        _ruled([header, *rows]),
        Spacer(1, 10),
        Paragraph("Gains on disposal are included in operating profit. A dash is zero.", BODY),
    ]
    _simple(path, parts, "Segment results 2025")


def _tariff(path: Path) -> None:
    header = ["Vehicle class", "2025, EUR per km", "2026, EUR per km"]
    prices = zip(facts.VEHICLES, facts.TARIFF_2025, facts.TARIFF_2026, strict=True)
    rows = [[vehicle, f"{old:.3f}", f"{new:.3f}"] for vehicle, old, new in prices]
    parts = [
        Paragraph("Toll tariff from 1 January 2026", STYLES["Heading1"]),
        Paragraph("All toll roads, loaded and empty kilometres alike.", BODY),
        _ruled([header, *rows]),
    ]
    _simple(path, parts, "Toll tariff 2026")


def _amount(value: int) -> str:
    if value == 0:
        return "\N{EN DASH}"
    return f"({-value:,})" if value < 0 else f"{value:,}"


def _ruled(rows: list[list[str]]) -> Table:
    table = Table(rows, hAlign="LEFT")
    table.setStyle(
        TableStyle(
            [
                ("GRID", (0, 0), (-1, -1), 0.5, colors.black),
                ("ALIGN", (1, 0), (-1, -1), "RIGHT"),
                ("FONTSIZE", (0, 0), (-1, -1), 9),
                ("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold"),
            ]
        )
    )
    return table


def _simple(path: Path, parts: list[Flowable], title: str) -> None:
    SimpleDocTemplate(str(path), pagesize=A4, invariant=1, title=title).build(parts)
