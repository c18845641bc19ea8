# SPDX-License-Identifier: Apache-2.0
"""The mailbox of Finance: rates, targets, utilisation, the closing of the year."""

from facts.engagements import ENGAGEMENTS
from facts.hours import LATE
from facts.invoices import INVOICES
from facts.office import hours_to
from facts.people import name_of

from post.talk import Note, Thread, at, html_table, text_table

_PARTNERS = ("helena.marsden", "gareth.holloway", "marcus.vane", "judith.aldane")
_UTILISATION = "Finance/Utilisation/utilisation_2025-Q4"
_LEDGER = [
    ["Engagement", "Client", "Hours 2025"],
    *(
        [code, terms.client, f"{sum(hours_to(code, 12).values()):,}"]
        for code, terms in ENGAGEMENTS.items()
    ),
]
_OPEN = [
    ["Invoice", "Client", "Issued", "GBP with VAT"],
    *(
        [
            found.number,
            ENGAGEMENTS[found.code].client,
            f"{found.issued:%d/%m/%Y}",
            f"{found.gross:,.2f}",
        ]
        for found in INVOICES
        if found.is_open
    ),
]
_LATE = [
    ["Engagement", "Person", "Hours of December"],
    *([code, name_of(person), str(hours)] for (code, person), hours in LATE.items()),
]

THREADS = (
    Thread(
        key="card-2025-b",
        subject="Rate card 2025-B from 1 July",
        notes=(
            Note(
                date=at(2025, 6, 16, 9, 0),
                sender="malcolm.strand",
                to=_PARTNERS,
                cc=("imogen.tate", "bea.lockwood"),
                text="""\
Dear all,

the board has released card 2025-B. It applies to work from 1 July; June is still charged by
2025-A, also where the invoice goes out in July.
""",
                attach=("Rates/rate_card_2025-B.pdf",),
            ),
            Note(
                date=at(2025, 6, 16, 9, 41),
                sender="judith.aldane",
                to=("malcolm.strand",),
                text="Does that hold for Calderbridge too? Their letter is older.",
            ),
            Note(
                date=at(2025, 6, 16, 10, 3),
                sender="malcolm.strand",
                to=("judith.aldane",),
                cc=("imogen.tate",),
                text="Yes, clause 4 is the same in all our letters. Only the discount differs.",
            ),
        ),
    ),
    Thread(
        key="card-2026-a",
        subject="Rate card 2026-A from 1 January",
        notes=(
            Note(
                date=at(2025, 12, 15, 9, 0),
                sender="malcolm.strand",
                to=_PARTNERS,
                cc=("imogen.tate", "bea.lockwood"),
                text="Dear all,\n\ncard 2026-A is attached, for work from 1 January.",
                attach=("Rates/rate_card_2026-A.pdf",),
            ),
        ),
    ),
    Thread(
        key="targets-q4",
        subject="Utilisation target of Organisation",
        notes=(
            Note(
                date=at(2025, 9, 17, 11, 25),
                sender="nora.quill",
                to=_PARTNERS,
                cc=("dev.mistry", "malcolm.strand"),
                text="""\
Dear all,

the minutes of yesterday are attached. Item 2 changes a target for the fourth quarter.
""",
                attach=("Board/minutes_2025-09-16.pdf",),
            ),
            Note(
                date=at(2025, 9, 17, 12, 40),
                sender="judith.aldane",
                to=("nora.quill",),
                cc=("dev.mistry",),
                text="Thank you. Dev, please use it from October.",
            ),
        ),
    ),
    Thread(
        key="utilisation-q4",
        subject="Utilisation, fourth quarter",
        notes=(
            Note(
                date=at(2025, 12, 19, 17, 30),
                sender="dev.mistry",
                to=_PARTNERS,
                cc=("malcolm.strand", "constance.pryce"),
                text="""\
Dear all,

version 2 is attached, by note FP-11 and with the timesheets that are in today. Organisation is
furthest from its target.
""",
                attach=(f"{_UTILISATION}_v2.pdf",),
            ),
            Note(
                date=at(2025, 12, 22, 8, 50),
                sender="judith.aldane",
                to=("dev.mistry",),
                cc=("malcolm.strand",),
                text="Two of my people have not sent December yet. Please hold this back.",
            ),
            Note(
                date=at(2026, 1, 9, 16, 30),
                sender="dev.mistry",
                to=_PARTNERS,
                cc=("malcolm.strand", "constance.pryce"),
                text="""\
Dear all,

version 3 is final and replaces the other two: version 2 missed late timesheets. It has hours
only. For the percentages take off the approved group training, as FP-11 says.
""",
                attach=(f"{_UTILISATION}_v3_final.pdf",),
            ),
            Note(
                date=at(2026, 1, 9, 16, 52),
                sender="constance.pryce",
                to=("dev.mistry",),
                cc=("nora.quill",),
                text="Nora, who is below target now? I would like it on one line for the 20th.",
            ),
        ),
    ),
    Thread(
        key="timesheets-december",
        subject="Timesheets for December",
        notes=(
            Note(
                date=at(2025, 12, 12, 8, 30),
                sender="dev.mistry",
                to=(
                    "daniel.okoro",
                    "erin.sutcliffe",
                    "leila.haddad",
                    "tom.eversley",
                    "owen.tregarth",
                ),
                html="""\
<p>Dear all,</p>
<p>I take the hours on <b>Friday, 19 December, 17:00</b>. What comes later counts in the ledger,
but not in the figures before Christmas.</p>
""",
            ),
            Note(
                date=at(2026, 1, 5, 10, 20),
                sender="dev.mistry",
                to=("bea.lockwood",),
                text=f"These came after the 19th:\n\n{text_table(_LATE)}\n\nNothing is missing.",
                html=f"""\
<p>These came after the 19th:</p>
{html_table(_LATE)}
<p>Nothing is missing.</p>
""",
            ),
        ),
    ),
    Thread(
        key="ledger-closed",
        subject="Hours ledger 2025 is closed",
        notes=(
            Note(
                date=at(2026, 1, 9, 14, 0),
                sender="bea.lockwood",
                to=(*_PARTNERS, "imogen.tate", "dev.mistry"),
                cc=("malcolm.strand",),
                html=f"""\
<p>Dear all,</p>
<p>the ledger is closed: Finance/hours_ledger_2025.pdf. Hours of the year by engagement:</p>
{html_table(_LEDGER)}
<p>From now on nothing is taken from preliminary timesheets any more.</p>
""",
            ),
        ),
    ),
    Thread(
        key="accruals-december",
        subject="Accruals for December",
        notes=(
            Note(
                date=at(2026, 1, 9, 15, 40),
                sender="malcolm.strand",
                to=("bea.lockwood", "imogen.tate"),
                text="""\
Bea, Imogen,

December is not invoiced before the 15th, so I need its fees as accruals on Tuesday: all work by
the hour, what is capped only up to its cap. Terms as they hold in December, please. The auditors
remarked last year that our register does not follow variations.
""",
            ),
            Note(
                date=at(2026, 1, 9, 16, 18),
                sender="bea.lockwood",
                to=("malcolm.strand",),
                cc=("imogen.tate",),
                text="You get a table in Word. Fixed fees are in the accounts already.",
            ),
        ),
    ),
    Thread(
        key="forecast-2026",
        subject="Forecast 2026",
        notes=(
            Note(
                date=at(2025, 12, 17, 16, 0),
                sender="bea.lockwood",
                to=("ruth.castell",),
                cc=("malcolm.strand",),
                text="""\
Hi Ruth,

the forecast is attached, the sheet for Lindale is laid out and empty. When the terms are settled:
hours from the letter, rates of 2026, the discount, and then link the summary to the sheet.
""",
                attach=("Finance/forecast_2026.xlsx",),
            ),
            Note(
                date=at(2025, 12, 18, 9, 9),
                sender="ruth.castell",
                to=("bea.lockwood",),
                text="Will do in January. The discount is not settled yet.",
            ),
        ),
    ),
    Thread(
        key="open-invoices",
        subject="Open invoices at the end of the year",
        notes=(
            Note(
                date=at(2026, 1, 5, 9, 50),
                sender="imogen.tate",
                to=("malcolm.strand",),
                cc=("bea.lockwood",),
                text=f"Dear Malcolm,\n\nopen on 31 December:\n\n{text_table(_OPEN)}",
                html=f"<p>Dear Malcolm,</p>\n<p>open on 31 December:</p>\n{html_table(_OPEN)}",
            ),
            Note(
                date=at(2026, 1, 5, 11, 5),
                sender="malcolm.strand",
                to=("imogen.tate",),
                cc=("judith.aldane",),
                text="Nearly half of it is two of Judith's clients. May I call Brayfield?",
            ),
        ),
    ),
    Thread(
        key="expenses-policy",
        subject="Expenses: a reminder of FP-07",
        notes=(
            Note(
                date=at(2025, 5, 6, 8, 45),
                sender="bea.lockwood",
                to=_PARTNERS,
                text="""\
Dear all,

claims without a receipt are borne by the practice. The 5 % of the note holds unless the letter of
the engagement says otherwise, as two of them do.
""",
            ),
        ),
    ),
)
