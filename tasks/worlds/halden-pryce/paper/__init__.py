# SPDX-License-Identifier: Apache-2.0
"""The PDF files and the plain texts of the drive.

sheet, tables                pages and tables, as every document sets them
texts                        the README of the drive
rates, policies, letters     what holds: cards, notes, terms
ledger, invoices, accounts   the year's hours and money
utilisation                  three versions of one report
training                     forms with field values
board, scan                  minutes, and a scanned resolution
reports                      a status report and two proposals
"""

from pathlib import Path

from paper import (
    accounts,
    board,
    invoices,
    ledger,
    letters,
    policies,
    rates,
    reports,
    scan,
    texts,
    training,
    utilisation,
)

_WRITERS = (
    texts, rates, policies, letters, ledger, invoices, accounts, utilisation, training, board, scan,
    reports,
)  # fmt: skip


def write(drive: Path) -> None:
    """Write all of them below the drive."""
    for writer in _WRITERS:
        writer.write(drive)
