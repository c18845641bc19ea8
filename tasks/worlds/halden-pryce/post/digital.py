# SPDX-License-Identifier: Apache-2.0
"""The mailbox of Digital: Merrowfield Bank and Skelwith Energy."""

from facts.decoys import merrowfield_margin
from facts.engagements import ENGAGEMENTS
from facts.fees import time_fee
from facts.hours import LATE
from facts.office import STEERED, hours_to

from post.talk import Note, Thread, at

_MERROWFIELD = "Engagements/HP-2504_Merrowfield_Bank"
_PACK = "Engagements/HP-2508_Skelwith_Energy/steering_pack_2025-12.pptx"
_CHARGED = sum(time_fee(STEERED, month) for month in range(1, 12))
_FINAL = hours_to(STEERED, 12)
_CONSULTANT = _FINAL["Consultant"] - LATE[STEERED, "chloe.winters"]
_TOTAL = sum(_FINAL.values()) - LATE[STEERED, "chloe.winters"]

THREADS = (
    Thread(
        key="merrowfield-variation",
        subject="HP-2504: variation letter 1",
        notes=(
            Note(
                date=at(2025, 8, 22, 15, 10),
                sender="marcus.vane",
                to=("HP-2504",),
                cc=("leila.haddad",),
                text="""\
Dear Anthea,

as agreed on Wednesday, attached is the variation letter. It holds from 1 September.
""",
                attach=(f"{_MERROWFIELD}/variation_letter_1.pdf",),
            ),
            Note(
                date=at(2025, 8, 26, 9, 30),
                sender="HP-2504",
                to=("marcus.vane",),
                text="Dear Marcus,\n\naccepted, the countersigned copy is in the post.",
            ),
            Note(
                date=at(2025, 9, 2, 16, 5),
                sender="leila.haddad",
                to=("imogen.tate",),
                cc=("marcus.vane",),
                text="""\
Hi Imogen,

please invoice Merrowfield from September by variation letter 1, it is in the engagement's folder.
""",
            ),
        ),
    ),
    Thread(
        key="merrowfield-margin",
        subject="Merrowfield: how the year went",
        notes=(
            Note(
                date=at(2026, 1, 9, 17, 20),
                sender="marcus.vane",
                to=("constance.pryce",),
                cc=("leila.haddad",),
                text=f"""\
Constance,

the status report is attached: a margin of {merrowfield_margin():.1f} % on Merrowfield in 2025,
worked out by the engagement letter. Leila will redo it with the terms as they changed.
""",
                attach=(f"{_MERROWFIELD}/status_report_2025-12.pdf",),
            ),
            Note(
                date=at(2026, 1, 9, 18, 2),
                sender="constance.pryce",
                to=("marcus.vane",),
                cc=("leila.haddad", "malcolm.strand"),
                text="Thank you. The board gets the redone figure, not this one.",
            ),
        ),
    ),
    Thread(
        key="promotion-petrov",
        subject="Congratulations, Nadia",
        notes=(
            Note(
                date=at(2025, 6, 27, 12, 0),
                sender="philippa.crane",
                to=("marcus.vane", "leila.haddad", "tom.eversley", "nadia.petrov"),
                cc=("dev.mistry", "imogen.tate"),
                text="""\
Dear all,

from 1 July Nadia Petrov is Manager. Resourcing and Billing: please use the new grade from then.
""",
            ),
            Note(
                date=at(2025, 6, 27, 12, 9),
                sender="nadia.petrov",
                to=("philippa.crane",),
                cc=("marcus.vane",),
                text="Thank you all. Cake on Tuesday, second floor.",
            ),
        ),
    ),
    Thread(
        key="skelwith-steering",
        subject="Metering data: steering pack for January",
        notes=(
            Note(
                date=at(2025, 12, 5, 16, 0),
                sender="tom.eversley",
                to=("HP-2508",),
                cc=("marcus.vane",),
                text="""\
Dear Farida,

ahead of the meeting, here is the pack as of 30 November. I bring the hours up to date once
December is closed.
""",
                attach=(_PACK,),
            ),
            Note(
                date=at(2025, 12, 18, 10, 44),
                sender="HP-2508",
                to=("tom.eversley",),
                text="""\
Dear Tom,

thank you. Our finance people ask where the hours will stand at the end of the year, and they
compare with the budget in the letter, not with the one in your proposal.
""",
            ),
            Note(
                date=at(2025, 12, 22, 9, 15),
                sender="tom.eversley",
                to=("marcus.vane",),
                cc=("chloe.winters", "yusuf.demir"),
                text=f"""\
Marcus,

from the timesheets of Friday we end the year at {_TOTAL:,} hours, {_CONSULTANT} of them
consultants. I would put that into the pack.
""",
            ),
            Note(
                date=at(2026, 1, 9, 15, 5),
                sender="marcus.vane",
                to=("tom.eversley",),
                cc=("chloe.winters", "yusuf.demir"),
                text="""\
Tom,

not those, December was not complete then. Bea closed the ledger today: the pack shows the
ledger, against the budget of the engagement letter.
""",
            ),
        ),
    ),
    Thread(
        key="skelwith-cap",
        subject="HP-2508: close to the cap",
        notes=(
            Note(
                date=at(2025, 12, 8, 9, 36),
                sender="imogen.tate",
                to=("tom.eversley",),
                cc=("marcus.vane",),
                text=f"""\
Hi Tom,

with the November invoice we have charged {_CHARGED:,.2f} pounds in fees to Skelwith. The cap is
{ENGAGEMENTS[STEERED].fee:,}. December will be over it.
""",
            ),
            Note(
                date=at(2025, 12, 8, 11, 12),
                sender="tom.eversley",
                to=("imogen.tate",),
                cc=("marcus.vane",),
                text="I know. Charge what is left of it. An extension is coming.",
            ),
        ),
    ),
)
