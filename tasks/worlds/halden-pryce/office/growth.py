# SPDX-License-Identifier: Apache-2.0
"""The interim deck of HP-2506: three options for growth, side by side."""

from datetime import UTC, datetime
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.office import OPTIONS
from forms.deck import BODY, deck
from pptx.enum.chart import XL_CHART_TYPE

SAVED = datetime(2025, 11, 18, 12, 5, tzinfo=UTC)
YEARS = ("2026", "2027", "2028")


def write(path: Path) -> None:
    """Write the deck."""
    client = ENGAGEMENTS["HP-2506"].client
    with deck(path, saved=SAVED, author="Owen Tregarth", title="Growth options") as slides:
        slides.cover("Growth options: interim findings", f"{client}, 18 November 2025")
        options = slides.page("Three options")
        boxes = [(name, f"{name}\nRisk: {risk}") for name, *_, risk in OPTIONS]
        options.group("Options", boxes, (0.5, 1.8, 9.0, 2.2))
        options.notes("Ask the client first which of the risks it would rather carry.")
        gains = slides.page("Premium gained")
        series = {name: premium for name, premium, *_ in OPTIONS}
        kind = XL_CHART_TYPE.LINE_MARKERS
        gains.chart("Premium chart", YEARS, series, BODY, title="GBP million a year", kind=kind)
        cost = slides.page("Gain and cost")
        rows = [
            [name, str(sum(premium)), str(spent), f"{sum(premium) / spent:.1f}"]
            for name, premium, spent, _ in OPTIONS
        ]
        head = ["Option", "Premium to 2028", "Cost", "Premium a pound of cost"]
        cost.table("Option table", [head, *rows], (0.5, 1.6, 9.0, 2.2))
        cost.notes("GBP million. The first option pays best and is the smallest.")
        slides.bullets("Next steps", ("Interviews with six brokers", "Pricing test in two regions"))
