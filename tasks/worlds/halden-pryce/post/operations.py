# SPDX-License-Identifier: Apache-2.0
"""The mailbox of Operations: Tarnbrook Water, Lindale Foods, Thornby Rail."""

from facts.decoys import tarnbrook_july
from facts.invoices import invoice_of
from facts.outlook import DISCOUNT_PERMILLE, FIRST_DISCOUNT_PERMILLE

from post.talk import Note, Thread, at

_TARNBROOK = "Engagements/HP-2501_Tarnbrook_Water"
_LINDALE = "Engagements/HP-2505_Lindale_Foods"
_JULY, _AUGUST = invoice_of("HP-2501", 7), invoice_of("HP-2501", 8)

THREADS = (
    Thread(
        key="tarnbrook-start",
        subject="HP-2501: engagement letter and start on site",
        notes=(
            Note(
                date=at(2025, 3, 20, 10, 12),
                sender="gareth.holloway",
                to=("HP-2501",),
                cc=("daniel.okoro",),
                text="""\
Dear Miriam,

attached is the engagement letter as we discussed it. If it is in order, please sign and return
it before the end of the month. Daniel runs the work and will be on site from the first week of
April.
""",
                attach=(f"{_TARNBROOK}/engagement_letter.pdf",),
            ),
            Note(
                date=at(2025, 3, 26, 16, 40),
                sender="HP-2501",
                to=("gareth.holloway",),
                cc=("daniel.okoro",),
                text="Dear Gareth,\n\nsigned, the original is in the post. Passes are at the gate.",
            ),
            Note(
                date=at(2025, 3, 27, 9, 5),
                sender="daniel.okoro",
                to=("HP-2501",),
                cc=("lewis.brandt", "tariq.saleem"),
                text="""\
Dear Miriam,

thank you. Lewis, Tariq and I arrive on 7 April. In the first two weeks we need the district
meter readings of the last three years and an hour with each of your four network managers.
""",
            ),
        ),
    ),
    Thread(
        key="tarnbrook-review",
        subject="Tarnbrook invoices: first pass of the review",
        notes=(
            Note(
                date=at(2025, 10, 14, 11, 30),
                sender="imogen.tate",
                to=("gareth.holloway",),
                cc=("bea.lockwood",),
                text=f"""\
Hi Gareth,

I went through the six invoices for April to September, note attached. The July one,
{_JULY.number}, seems {tarnbrook_july():,.2f} too high: it uses the new card, and the letter was
signed under the old one. Shall I prepare the credit note?

August ({_AUGUST.number}) has expenses above the usual 5 %, that is a smaller matter.
""",
                attach=("Finance/Invoices/invoice_review_first_pass.pdf",),
            ),
            Note(
                date=at(2025, 10, 14, 14, 2),
                sender="gareth.holloway",
                to=("imogen.tate",),
                cc=("bea.lockwood",),
                text="Please send nothing to the client yet. Bea should look at it first.",
            ),
            Note(
                date=at(2025, 10, 21, 9, 48),
                sender="bea.lockwood",
                to=("imogen.tate", "gareth.holloway"),
                text="""\
Imogen, Gareth,

I withdraw the note of 14 October. Clause 4 of the engagement letter lets a new rate card apply
from the day it comes into force, so July at card 2025-B is right. The letter also sets its own
limit for expenses.

One of the six invoices is nevertheless wrong: hours against the ledger are to be checked, which
the first pass did not do. That waits until the ledger is closed. No credit note before then.
""",
            ),
            Note(
                date=at(2025, 10, 21, 10, 15),
                sender="imogen.tate",
                to=("bea.lockwood",),
                cc=("gareth.holloway",),
                text="Understood, it stays in the folder as a working paper.",
            ),
        ),
    ),
    Thread(
        key="lindale-extension",
        subject="HP-2505: extension into 2026",
        notes=(
            Note(
                date=at(2025, 12, 17, 11, 20),
                sender="gareth.holloway",
                to=("HP-2505",),
                cc=("ruth.castell", "simone.archer"),
                text="""\
Dear Jonas,

here is the letter that extends our work to the end of 2026, with the hours by quarter that Simone
and your plant managers settled. The discount is left open in it: Ruth will confirm it by mail.
""",
                attach=(f"{_LINDALE}/extension_letter.pdf",),
            ),
            Note(
                date=at(2025, 12, 18, 15, 33),
                sender="HP-2505",
                to=("gareth.holloway",),
                cc=("ruth.castell",),
                text="Dear Gareth,\n\nsigned. Ruth, I expect your mail in the new year.",
            ),
        ),
    ),
    Thread(
        key="lindale-discount",
        subject="HP-2505: discount for 2026",
        notes=(
            Note(
                date=at(2026, 1, 5, 9, 24),
                sender="ruth.castell",
                to=("HP-2505",),
                cc=("gareth.holloway", "bea.lockwood"),
                text=f"""\
Dear Jonas,

a happy new year. As promised the discount for the extension: {FIRST_DISCOUNT_PERMILLE / 10:g} %
off our rate card, for all grades and all of 2026.
""",
            ),
            Note(
                date=at(2026, 1, 6, 12, 3),
                sender="HP-2505",
                to=("ruth.castell",),
                text="""\
Dear Ruth,

the same to you. I remember another figure from our talk on the 17th, could you look at your notes?
""",
            ),
            Note(
                date=at(2026, 1, 8, 8, 57),
                sender="ruth.castell",
                to=("HP-2505",),
                cc=("gareth.holloway", "bea.lockwood"),
                text=f"""\
Dear Jonas,

you are right, and I am sorry: my mail of Monday had a slip in it. What we agreed for 2026 is
{DISCOUNT_PERMILLE / 10:g} %, for all grades and the whole year. Please take this mail as the
confirmation that the extension letter speaks of.
""",
            ),
            Note(
                date=at(2026, 1, 8, 13, 41),
                sender="HP-2505",
                to=("ruth.castell",),
                cc=("gareth.holloway",),
                text="Dear Ruth,\n\nthank you, that is what I had. Agreed.",
            ),
        ),
    ),
    Thread(
        key="thornby-access",
        subject="Depot visits in December",
        notes=(
            Note(
                date=at(2025, 11, 24, 8, 15),
                sender="HP-2507",
                to=("ruth.castell",),
                text="""\
Dear Ruth,

the north depot is closed to visitors from 15 December, the wheel lathe is being replaced. Could
your people come in the first two weeks?
""",
            ),
            Note(
                date=at(2025, 11, 24, 10, 50),
                sender="ruth.castell",
                to=("HP-2507",),
                cc=("simone.archer", "freya.lindqvist"),
                text="Dear Neil,\n\nyes: Freya on the 3rd and 4th, Simone on the 9th.",
            ),
        ),
    ),
)
