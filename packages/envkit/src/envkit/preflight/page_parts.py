# SPDX-License-Identifier: Apache-2.0
"""What the sections of the page are built of: headings, notes, tables, bars."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from envkit.preflight.markup import Child, Html, el


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page, that its list of contents leads to."""

    title: str
    body: tuple[Child, ...]

    @property
    def anchor(self) -> str:
        """Its id; titles are ours, so it needs no escaping."""
        return self.title.lower().replace(" ", "-")

    def html(self) -> Html:
        """The section itself."""
        return el("section", el("h2", self.title), *self.body, id=self.anchor)


def note(text: str) -> Html:
    """A remark below what it is about."""
    return el("p", text, class_="dim")


def table(
    head: Sequence[str], rows: Sequence[Sequence[Child]], numbers: Collection[int] = ()
) -> Html:
    """A table; columns of numbers are right-aligned."""
    kinds = [{"class_": "n"} if n in numbers else {} for n in range(len(head))]
    top = [el("th", name, scope="col", **kind) for name, kind in zip(head, kinds, strict=True)]
    body = [
        el("tr", [el("td", cell, **kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in rows
    ]
    return el("div", el("table", el("thead", el("tr", top)), el("tbody", body)), class_="scroll")


def bar(value: float, most: float, kind: str = "") -> Html:
    """A bar as long as a value is of the greatest."""
    width = round(100 * value / most) if most > 0 else 0
    return el("i", class_=f"bar {kind}".strip(), style=f"width:{width}px")


def folded(summary: str, *children: Child) -> Html:
    """What few need, a click away."""
    return el("details", el("summary", summary), *children)
