# SPDX-License-Identifier: Apache-2.0
"""The PDF files: a two-column note, a single-column draft, and ruled tables.

reportlab's invariant mode leaves out the clock and the random document id.
"""

from collections.abc import Sequence
from pathlib import Path

import facts
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

POLICY_TEXT = (
    (
        "1. Purpose",
        "Adjusted EBITDA is the measure by which the segments are steered and the "
        "figure that lenders ask for. The way it was worked out had grown over the years and differed "
        "between reports. This note sets one definition for the Group and its segments.",
    ),
    (
        "2. What it replaces",
        f"This note is in force for the financial year 2025 and later. It "
        f"replaces draft {facts.DRAFT_POLICY}, which was circulated for comment and never came into "
        "force. Figures worked out with the draft must not be quoted, neither inside the Group nor to "
        "lenders.",
    ),
    (
        "3. Why the draft was changed",
        "Comments on the draft named two weaknesses. Share-based pay "
        "is a cost of employing people, and adding it back made segments with many participants look "
        "better than they were. Selling a terminal is not part of running one, and the draft left the "
        "gain inside the measure.",
    ),
    (
        "4. Calculation",
        "Adjusted EBITDA starts from operating profit. These amounts are added "
        "back: depreciation and amortisation; restructuring costs. These amounts are deducted: gains "
        "on disposal. Share-based payments are no longer added back. Nothing else is adjusted without "
        "a new note.",
    ),
    (
        "5. The base of the margin",
        "Fuel surcharges rise and fall with the oil price and are handed "
        "on to customers at cost, so they say nothing about performance. The margin is therefore "
        "stated on net revenue, which is revenue less fuel surcharges passed through. The draft had "
        "used revenue as reported.",
    ),
    (
        "6. Presentation",
        "Amounts are shown in thousands of euro and margins with one decimal. A "
        "report that shows the measure names this note. Earlier years are restated where they are "
        "shown beside 2025.",
    ),
    (
        "7. Questions",
        "Questions about a case that this note does not settle go to Group Finance "
        "before the figure is published.",
    ),
)

DRAFT_TEXT = (
    (
        "1. Calculation",
        "Adjusted EBITDA is operating profit plus depreciation and amortisation, "
        "restructuring costs and share-based payments.",
    ),
    (
        "2. The base of the margin",
        "The margin is stated on revenue as reported, including fuel surcharges.",
    ),
    (
        "3. Comments",
        "Comments are welcome until 30 May 2025. Until a final note is issued this "
        "text is a proposal only.",
    ),
)


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
    left, right = _paragraphs(POLICY_TEXT[:4]), _paragraphs(POLICY_TEXT[4:])
    document.build([*head, FrameBreak(), *left, FrameBreak(), *right])


def _draft(path: Path) -> None:
    head = [
        Paragraph(f"Finance note {facts.DRAFT_POLICY}: adjusted EBITDA", STYLES["Heading1"]),
        Paragraph(f"{facts.FIRM}, Group Finance. Draft for comment, 5 May 2025.", BODY),
    ]
    _simple(path, [*head, *_paragraphs(DRAFT_TEXT)], facts.DRAFT_POLICY)


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
