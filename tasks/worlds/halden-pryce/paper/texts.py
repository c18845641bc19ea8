# SPDX-License-Identifier: Apache-2.0
"""The plain files of the drive."""

from pathlib import Path

from facts.firm import FIRM, LEDGER_CLOSED

README = f"""\
Shared drive of {FIRM}

Board/           minutes, and the signed resolution on targets
Correspondence/  mailboxes, chat and calendar, exported on 12 January 2026
Engagements/     a folder for each engagement: letters, proposals, reports
Finance/         hours ledger, invoices, utilisation reports, workbooks
People/          capacity, group training forms
Policies/        numbered notes; a note is in force when it says so
Rates/           rate cards and cost rates

The hours ledger closed on {LEDGER_CLOSED.day} January 2026. What was taken before is preliminary.
Engagement letters rank before the register, and a variation letter before its engagement letter.
"""


def write(drive: Path) -> None:
    """Write every text file below the drive."""
    (drive / "README.txt").write_text(README, encoding="utf-8", newline="\n")
