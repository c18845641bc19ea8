# SPDX-License-Identifier: Apache-2.0
"""Small documents made for tests, each of one kind."""

from __future__ import annotations

import random
from pathlib import Path

import docx
import openpyxl
import pptx
from PIL import Image
from reportlab.lib import colors, pdfencrypt
from reportlab.lib.pagesizes import letter
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    FrameBreak,
    PageTemplate,
    Paragraph,
    SimpleDocTemplate,
    Table,
)

WIDTH, HEIGHT = letter
ROWS = [
    ["Segment", "FY2023", "FY2024"],
    ["Cloud", "1,204.5", "1,398.2"],
    ["Licences", "", "880.1"],
    ["Total", "2,094.6", "2,278.3"],
]
BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=9, leading=11, alignment=4)
WORDS = "revenue growth margin client merger clause asset equity debt market risk audit".split()


def sentences(mark: str, count: int) -> str:
    """Numbered sentences, so that the order of reading can be checked."""
    return " ".join(
        f"{mark}{i:02d} {' '.join(WORDS[(i + k) % len(WORDS)] for k in range(7))}."
        for i in range(count)
    )


def text_pdf(path: Path, pages: list[str], **options: object) -> Path:
    """One page for each text, one line for each of its lines."""
    page = canvas.Canvas(str(path), pagesize=letter, **options)
    for text in pages:
        for number, line in enumerate(text.splitlines()):
            page.drawString(72, HEIGHT - 72 - 14 * number, line)
        page.showPage()
    page.save()
    return path


def table_pdf(path: Path, rows: list[list[str]] | None = None, style: list | None = None) -> Path:
    """A ruled table."""
    table = Table(rows or ROWS, colWidths=100)
    table.setStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), *(style or [])])
    before = Paragraph("Segments in USD millions.", BODY)
    SimpleDocTemplate(str(path), pagesize=letter).build([before, table])
    return path


def plain_table_pdf(path: Path) -> Path:
    """The same table without a single line."""
    page = canvas.Canvas(str(path), pagesize=letter)
    page.setFont("Helvetica", 10)
    for r, row in enumerate(ROWS):
        page.drawString(72, 700 - 16 * r, row[0])
        for c, cell in enumerate(row[1:]):
            page.drawRightString(280 + 90 * c, 700 - 16 * r, cell)
    page.save()
    return path


def two_column_pdf(path: Path, gap: float = 12, mixed: bool = False) -> Path:
    """A headline over two columns of prose; `mixed` draws the right one first."""
    width = (WIDTH - 144 - gap) / 2
    frames = [
        Frame(72 + i * (width + gap), 72, width, HEIGHT - 180, leftPadding=0, rightPadding=0)
        for i in range(2)
    ]

    def headline(page: canvas.Canvas, _document: object) -> None:
        page.setFont("Helvetica-Bold", 14)
        page.drawCentredString(WIDTH / 2, HEIGHT - 72, "HEADLINE over both columns")

    left, right = Paragraph(sentences("L", 20), BODY), Paragraph(sentences("R", 20), BODY)
    document = BaseDocTemplate(str(path), pagesize=letter)
    if mixed:
        frames, left, right = frames[::-1], right, left
    document.addPageTemplates(PageTemplate(frames=frames, onPage=headline))
    document.build([left, FrameBreak(), right])
    return path


def scanned_pdf(path: Path) -> Path:
    """A page that is only a picture."""
    page = canvas.Canvas(str(path), pagesize=letter)
    page.drawImage(ImageReader(Image.new("L", (400, 500), 200)), 72, 100, 400, 500)
    page.save()
    return path


def locked_pdf(path: Path) -> Path:
    """A page behind the password `open`."""
    return text_pdf(path, ["a secret of the board"], encrypt=pdfencrypt.StandardEncryption("open"))


def broken_pdf(path: Path) -> Path:
    """A file that begins as a PDF and is none."""
    path.write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 40)
    return path


def slow_pdf(path: Path, strings: int = 100_000) -> Path:
    """Half a megabyte that takes the PDF library minutes: many short strings on one page."""
    page = canvas.Canvas(str(path), pagesize=letter, pageCompression=1)
    page.drawString(72, 72, "x")
    places = (f"1 0 0 1 {i % 499} {i // 499 % 700} Tm ({i:08d}) Tj" for i in range(strings))
    page._code.append("BT /F1 8 Tf\n" + "\n".join(places) + "\nET")
    page.save()
    return path


def small_image(path: Path) -> Path:
    """A picture of 40 x 30 pixels."""
    Image.new("RGB", (40, 30), "red").save(path)
    return path


def noise_image(path: Path) -> Path:
    """A picture that does not compress."""
    noise = random.Random(7).randbytes(1600 * 1200 * 3)
    Image.frombytes("RGB", (1600, 1200), noise).save(path, "PNG")
    return path


def office_files(folder: Path) -> None:
    """A workbook, a letter and a deck with one findable text each."""
    book = openpyxl.Workbook()
    book.active.title = "Rates"
    book.active["B2"] = "freight margin"
    book.active["C3"] = "=1+1"
    book.save(folder / "book.xlsx")
    text = docx.Document()
    text.add_paragraph("The freight margin clause.")
    text.add_table(1, 1).cell(0, 0).text = "cell of the letter"
    text.save(str(folder / "letter.docx"))
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Freight margin by lane"
    slide.notes_slide.notes_text_frame.text = "say it slowly"
    deck.save(str(folder / "deck.pptx"))
