# SPDX-License-Identifier: Apache-2.0
"""The plain files: an index, notes, and tables as CSV."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import facts

README = f"""\
Shared drive of {facts.FIRM}, Group Finance

board/       papers for the supervisory board
operations/  routes, fuel contract, fuel market data
planning/    budget 2026 and what it is built from
policies/    finance notes; a note is in force when it says so, a draft never is
results/     segment results 2025

Amounts are in thousands of euro unless a document says otherwise.
"""

BOARD_NOTE = """\
# Full year 2025: first look at the segments

Prepared by Investor Relations on 9 January 2026, ahead of the audited tables.

- Road: volumes flat, price discipline held.
- Rail: a strong year. Adjusted EBITDA of 16,495 and an **adjusted EBITDA margin of 17.1 %**, worked
  out with the definition that Group Finance circulated in draft note FN-2025-04.
- Warehousing: two sites opened, start-up costs behind us.

Figures are preliminary. They were not updated after the final finance note was issued.
"""

PLANNING_NOTE = """\
# Budget 2026: planning notes

1. Tolls are budgeted by depot: planned kilometres of each vehicle class times the tariff that
   applies in 2026. Tolls are not passed on and not indexed.
2. Routes with the status `withdrawn` in `operations/route_km_2026.csv` will not be driven.
3. Diesel is budgeted at the contract price, never at a spot price.
4. The budget workbook recalculates itself. Inputs are typed over, formulas are left alone.
"""

CALENDAR = """\
date,step,owner
2026-01-12,Depots confirm planned kilometres,Operations
2026-01-19,Tolls and diesel price entered,Group Finance
2026-01-26,First reading of the budget,Executive Board
2026-02-09,Budget approved,Supervisory Board
"""


def write(drive: Path) -> None:
    """Write every text file below the drive."""
    files = {
        "README.txt": README,
        "board/fy2025_first_look.md": BOARD_NOTE,
        "planning/planning_notes.md": PLANNING_NOTE,
        "planning/calendar.csv": CALENDAR,
        "operations/route_km_2026.csv": _csv(_routes()),
        "operations/diesel_spot_prices.csv": _csv(_spot()),
        "results/revenue_by_quarter.csv": _csv(_quarters()),
    }
    for name, text in files.items():
        (drive / name).write_text(text, encoding="utf-8", newline="\n")


def _csv(rows: Iterable[tuple[object, ...]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def _routes() -> Iterator[tuple[object, ...]]:
    yield ("depot", "vehicle_class", "half_year", "status", "km")
    for status, table in (("planned", facts.PLANNED_KM), ("withdrawn", facts.WITHDRAWN_KM)):
        for depot, kilometres in table.items():
            for vehicle, km in zip(facts.VEHICLES, kilometres, strict=True):
                first = km * 47 // 100 // 1_000 * 1_000
                for half, share in (("H1", first), ("H2", km - first)):
                    if km:
                        yield (depot, vehicle, half, status, share)


def _spot() -> Iterator[tuple[object, ...]]:
    yield ("month", "spot_price_eur_per_litre")
    yield from facts.SPOT.items()


def _quarters() -> Iterator[tuple[object, ...]]:
    yield ("segment", "Q1", "Q2", "Q3", "Q4")
    for segment, revenue in facts.QUARTERLY_REVENUE.items():
        yield (segment, *revenue)
