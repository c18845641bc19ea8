# SPDX-License-Identifier: Apache-2.0
"""The numbered policy notes: two of one column, two of two columns; one of them is withdrawn."""

from pathlib import Path

from facts.firm import FIRM

from paper.sheet import body, heading, one_column, sections, two_columns

type Sections = tuple[tuple[str, str], ...]

_EXPENSES: Sections = (
    (
        "1. What is charged on",
        "Travel, accommodation and subsistence for an engagement are charged on at cost, without "
        "value added tax and without a mark-up. Travel in first class is not charged on.",
    ),
    (
        "2. Limit",
        "Expenses on an invoice do not exceed 5 % of its fees, unless the engagement letter sets "
        "another limit. The letter ranks before this note.",
    ),
    (
        "3. Receipts",
        "Receipts are filed with the claim within 30 days. A claim without receipts is not charged "
        "on and is borne by the practice.",
    ),
)
_WITHDRAWN: Sections = (
    (
        "1. Utilisation",
        "Utilisation is billable hours divided by contract hours. Leave and training are not taken "
        "out, so that all practices are measured on the same base.",
    ),
    (
        "2. Reporting",
        "Utilisation is reported each quarter by practice, in percent with one decimal.",
    ),
)
_UTILISATION: Sections = (
    (
        "1. Purpose",
        "Utilisation tells how much of the time that a practice has was worked for clients. It is "
        "the measure by which practices plan their staffing and against which the board sets "
        "targets. This note defines it for all practices.",
    ),
    (
        "2. What it replaces",
        "The note is in force from 1 April 2025. It replaces note FP-09, which divided by contract "
        "hours and so made a practice look idle whenever its people took the leave that they are "
        "due. Figures by FP-09 are not compared with targets any more.",
    ),
    (
        "3. Billable hours",
        "Billable hours are hours worked on engagements, as the hours ledger has them once it is "
        "closed. Hours written off or above a cap were worked and count. Proposals, recruiting and "
        "internal projects are not billable.",
    ),
    (
        "4. Available hours",
        "Available hours are contract hours less leave less approved group training. Contract "
        "hours are working days times 7.5 for each fee earner. Training counts only where its form "
        "has the status Approved; what was requested, declined or postponed does not count.",
    ),
    (
        "5. Utilisation",
        "Utilisation is billable hours divided by available hours, in percent. For a quarter, the "
        "hours of its three months are added up first and then divided; monthly percentages are "
        "not averaged.",
    ),
    (
        "6. Targets",
        "Targets are set by the board in percent. The distance to a target is stated in percentage "
        "points with one decimal. Where the board has changed a target during the year, the "
        "changed one applies from the quarter that the minutes name.",
    ),
    (
        "7. Reports",
        "A report that turns out to lack timesheets is replaced by a new version. Only the latest "
        "version is quoted.",
    ),
)
_CREDIT: Sections = (
    (
        "1. When a credit note is due",
        "An invoice that charges more than the engagement letter and the hours ledger allow is "
        "corrected by a credit note, whether or not the client has noticed. The ledger is the "
        "record of hours; a timesheet that never reached it is not charged.",
    ),
    (
        "2. What is checked",
        "Each invoice is checked for four things: the hours of each grade against the ledger, the "
        "rate against the card in force in the month of the work, the discount against the letter "
        "and its variations, and the expenses against their limit.",
    ),
    (
        "3. Amount",
        "The credit is the difference of fees after discount, without value added tax. Value added "
        "tax is credited with it on the note itself. Amounts are exact to the penny.",
    ),
    (
        "4. Approval",
        "The engagement partner approves credits up to 5,000 pounds, the Finance Director above "
        "that. A credit note names the invoice, the grade, the hours and the reason.",
    ),
    (
        "5. First reviews",
        "A first review is a working paper. It binds nobody until the Financial Controller has "
        "confirmed it, and it is not sent to clients.",
    ),
)


def write(drive: Path) -> None:
    """Write the notes below the drive."""
    folder = drive / "Policies"
    _plain(
        folder / "FP-07_expenses.pdf", "FP-07: expenses", "In force from 1 January 2024.", _EXPENSES
    )
    _plain(
        folder / "FP-09_utilisation.pdf",
        "FP-09: utilisation",
        "Withdrawn on 31 March 2025; replaced by note FP-11.",
        _WITHDRAWN,
    )
    _memo(
        folder / "FP-11_utilisation.pdf",
        "FP-11: utilisation",
        "In force from 1 April 2025. Replaces note FP-09.",
        _UTILISATION,
        4,
    )
    _memo(
        folder / "FP-14_credit_notes.pdf",
        "FP-14: credit notes",
        "In force from 1 January 2025.",
        _CREDIT,
        3,
    )


def _head(title: str, force: str) -> list:
    return [heading(f"Policy note {title}"), body(f"{FIRM}, Finance. {force}")]


def _plain(path: Path, title: str, force: str, parts: Sections) -> None:
    one_column(path, title, [*_head(title, force), *sections(parts)])


def _memo(path: Path, title: str, force: str, parts: Sections, left: int) -> None:
    head, columns = _head(title, force), (sections(parts[:left]), sections(parts[left:]))
    two_columns(path, title, head, *columns)
