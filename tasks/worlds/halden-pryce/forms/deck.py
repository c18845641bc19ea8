# SPDX-License-Identifier: Apache-2.0
"""Slides with titles, text, tables, charts, grouped boxes and speaker notes.

Lengths are in inches on a slide of 10 x 7.5. Every shape that a task may name has a name of
its own. Charts are native: their numbers lie in a workbook embedded behind them.
"""

import io
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE, XL_LEGEND_POSITION
from pptx.enum.shapes import MSO_SHAPE
from pptx.presentation import Presentation as Deck
from pptx.slide import Slide
from pptx.util import Inches, Pt

from forms.archive import settled

type Box = tuple[float, float, float, float]
"""Left, top, width, height."""

_TITLE_ONLY, _TITLE, _BULLETS = 5, 0, 1
BODY: Box = (0.5, 1.6, 9.0, 5.2)
LEFT: Box = (0.5, 1.6, 4.4, 4.8)
RIGHT: Box = (5.1, 1.6, 4.4, 4.8)
FOOT: Box = (0.5, 6.5, 9.0, 0.6)


@dataclass(frozen=True, slots=True)
class Page:
    """One slide under construction."""

    slide: Slide

    def table(self, name: str, rows: Sequence[Sequence[str]], box: Box) -> None:
        """A table whose first row is its head."""
        frame = self.slide.shapes.add_table(len(rows), len(rows[0]), *_inches(box))
        frame.name = name
        for row, texts in zip(frame.table.rows, rows, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
                cell.text_frame.paragraphs[0].font.size = Pt(14)

    def chart(
        self,
        name: str,
        categories: Sequence[str],
        series: Mapping[str, Sequence[float]],
        box: Box,
        *,
        title: str,
        kind: XL_CHART_TYPE = XL_CHART_TYPE.COLUMN_CLUSTERED,
        number_format: str = "General",
    ) -> None:
        """A native chart with a legend below it."""
        data = CategoryChartData(number_format=number_format)
        data.categories = categories
        for label, values in series.items():
            data.add_series(label, values)
        frame = self.slide.shapes.add_chart(kind, *_inches(box), data)
        frame.name = name
        frame.chart.has_title = True
        frame.chart.chart_title.text_frame.text = title
        frame.chart.has_legend = len(series) > 1
        if frame.chart.legend is not None:
            frame.chart.legend.position = XL_LEGEND_POSITION.BOTTOM
            frame.chart.legend.include_in_layout = False

    def text(self, name: str, text: str, box: Box, size: int = 16) -> None:
        """A text box; a line break begins a paragraph."""
        shape = self.slide.shapes.add_textbox(*_inches(box))
        shape.name = name
        shape.text_frame.word_wrap = True
        shape.text_frame.text = text
        for paragraph in shape.text_frame.paragraphs:
            paragraph.font.size = Pt(size)

    def group(self, name: str, texts: Sequence[tuple[str, str]], box: Box) -> None:
        """A row of (name, text) boxes that form one group."""
        group = self.slide.shapes.add_group_shape()
        group.name = name
        left, top, width, height = box
        step = width / len(texts)
        for number, (part, text) in enumerate(texts):
            place = (left + number * step, top, step * 0.94, height)
            shape = group.shapes.add_shape(MSO_SHAPE.ROUNDED_RECTANGLE, *_inches(place))
            shape.name = part
            shape.text_frame.text = text
            shape.text_frame.word_wrap = True
            for paragraph in shape.text_frame.paragraphs:
                paragraph.font.size = Pt(14)

    def notes(self, text: str) -> None:
        """What the speaker reads."""
        frame = self.slide.notes_slide.notes_text_frame
        assert frame is not None
        frame.text = text


@dataclass(frozen=True, slots=True)
class Slides:
    """A deck under construction."""

    file: Deck

    def cover(self, title: str, subtitle: str) -> Page:
        """The first slide."""
        page = self._page(_TITLE, title)
        page.slide.placeholders[1].text = subtitle  # pyright: ignore[reportAttributeAccessIssue]
        return page

    def bullets(self, title: str, lines: Sequence[str]) -> Page:
        """A slide of bullet points."""
        page = self._page(_BULLETS, title)
        page.slide.placeholders[1].text = "\n".join(lines)  # pyright: ignore[reportAttributeAccessIssue]
        return page

    def page(self, title: str) -> Page:
        """A slide with a title and room for shapes."""
        return self._page(_TITLE_ONLY, title)

    def _page(self, layout: int, title: str) -> Page:
        slide = self.file.slides.add_slide(self.file.slide_layouts[layout])
        assert slide.shapes.title is not None
        slide.shapes.title.text = title
        return Page(slide)


@contextmanager
def deck(path: Path, *, saved: datetime, author: str, title: str) -> Generator[Slides]:
    """A deck that is written to `path` at the end of the block."""
    file = Presentation()
    file.core_properties.author = file.core_properties.last_modified_by = author
    file.core_properties.title = title
    yield Slides(file)
    buffer = io.BytesIO()
    file.save(buffer)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(settled(buffer.getvalue(), saved))


def _inches(box: Box) -> tuple[Inches, Inches, Inches, Inches]:
    left, top, width, height = box
    return Inches(left), Inches(top), Inches(width), Inches(height)
