# SPDX-License-Identifier: Apache-2.0
"""The mailbox of Strategy and Organisation: five clients."""

from facts.engagements import ENGAGEMENTS
from facts.invoices import invoice_of
from facts.office import OPTIONS

from post.talk import Note, Thread, at, html_table

_DECK = "Engagements/HP-2506_Penhallow_Insurance/growth_options_interim.pptx"
_OVERDUE = invoice_of("HP-2509", 8)
_ORSETT = ENGAGEMENTS["HP-2502"]
_STAGES = [
    ["Month", "Share", "GBP"],
    *(
        [("March", "May", "July")[number], f"{percent} %", f"{_ORSETT.fee * percent // 100:,}"]
        for number, percent in enumerate(_ORSETT.instalments.values())
    ),
]
_COUNTRIES = [
    ["Country", "Workshop", "Rehearsal"],
    ["Spain", "23 September", "4 November"],
    ["Italy", "25 September", "6 November"],
    ["Poland", "30 September", "11 November"],
]

THREADS = (
    Thread(
        key="orsett-fee",
        subject="Store network review: instalments",
        notes=(
            Note(
                date=at(2025, 1, 28, 14, 25),
                sender="HP-2502",
                to=("helena.marsden",),
                text="Dear Helena,\n\nwhen do we pay what? Our controller asks for one table.",
            ),
            Note(
                date=at(2025, 1, 28, 17, 10),
                sender="priya.nandan",
                to=("HP-2502",),
                cc=("helena.marsden",),
                text=f"""\
Dear Dominic,

the fee is fixed at {_ORSETT.fee:,} pounds and falls due in three parts: {_STAGES[1][1]} in March,
{_STAGES[2][1]} in May, {_STAGES[3][1]} in July.
""",
                html=f"""\
<p>Dear Dominic,</p>
<p>the fee is fixed at {_ORSETT.fee:,} pounds and falls due in three parts:</p>
{html_table(_STAGES)}
""",
            ),
            Note(
                date=at(2025, 1, 29, 8, 2),
                sender="HP-2502",
                to=("priya.nandan",),
                text="Dear Priya,\n\nthat is what he needed, thank you.",
            ),
        ),
    ),
    Thread(
        key="orsett-end",
        subject="Store network review: thank you",
        notes=(
            Note(
                date=at(2025, 7, 31, 16, 45),
                sender="HP-2502",
                to=("helena.marsden",),
                cc=("priya.nandan",),
                text="""\
Dear Helena,

the board took all of your proposals but one. Please thank Callum and Jude, the store visits in
March were what convinced it.
""",
            ),
        ),
    ),
    Thread(
        key="calderbridge-expenses",
        subject="HP-2503: expenses in spring",
        notes=(
            Note(
                date=at(2025, 4, 11, 9, 20),
                sender="HP-2503",
                to=("erin.sutcliffe",),
                text="""\
Dear Erin,

our auditors ask what limit holds for the expenses on your invoices.
""",
            ),
            Note(
                date=at(2025, 4, 11, 13, 55),
                sender="erin.sutcliffe",
                to=("HP-2503",),
                cc=("judith.aldane",),
                text=f"""\
Dear Oluwaseun,

the letter says {ENGAGEMENTS["HP-2503"].expense_limit_permille / 10:g} % of the fees of an
invoice, less than the 5 % of our own policy. All invoices so far are well below.
""",
            ),
        ),
    ),
    Thread(
        key="brayfield-overdue",
        subject=f"Reminder: invoice {_OVERDUE.number}",
        notes=(
            Note(
                date=at(2025, 11, 3, 10, 0),
                sender="imogen.tate",
                to=("HP-2509",),
                cc=("colin.mayhew",),
                text=f"""\
Dear Ms Cole,

our invoice {_OVERDUE.number} of 8 September over {_OVERDUE.gross:,.2f} pounds is still open.
Could you tell us when we may expect payment?
""",
            ),
            Note(
                date=at(2025, 11, 5, 15, 28),
                sender="HP-2509",
                to=("imogen.tate",),
                cc=("colin.mayhew",),
                text="""\
Dear Ms Tate,

the order number was missing from it. I have asked for payment in January, when the new budget is
released.
""",
            ),
            Note(
                date=at(2025, 11, 5, 16, 11),
                sender="colin.mayhew",
                to=("imogen.tate",),
                cc=("judith.aldane",),
                text="She means it. Leave it until the end of January, please.",
            ),
        ),
    ),
    Thread(
        key="penhallow-interim",
        subject="Growth options: interim deck",
        notes=(
            Note(
                date=at(2025, 11, 18, 12, 30),
                sender="owen.tregarth",
                to=("HP-2506",),
                cc=("helena.marsden", "priya.nandan"),
                text=f"""\
Dear Clare,

the interim deck for Thursday is attached. The largest of the three, {OPTIONS[1][0].lower()}, would
bring {OPTIONS[1][1][2]} million of premium in 2028 and cost {OPTIONS[1][2]} million to build.
""",
                attach=(_DECK,),
            ),
            Note(
                date=at(2025, 11, 20, 18, 4),
                sender="HP-2506",
                to=("owen.tregarth",),
                text="Dear Owen,\n\na good discussion. We would see the broker interviews first.",
            ),
            Note(
                date=at(2025, 11, 21, 9, 12),
                sender="owen.tregarth",
                to=("callum.reid", "jude.ashworth"),
                cc=("priya.nandan",),
                text="Callum, Jude, please set up six interviews. I do the first two.",
            ),
        ),
    ),
    Thread(
        key="quillan-dates",
        subject="Launch readiness: dates for the country teams",
        notes=(
            Note(
                date=at(2025, 9, 9, 11, 11),
                sender="alba.faria",
                to=("HP-2510",),
                cc=("mei.tanaka",),
                html=f"""\
<p>Dear Ravi,</p>
<p>these are the dates that the country teams gave us:</p>
{html_table(_COUNTRIES)}
<p>Please say by Friday if one of them does not suit you.</p>
""",
            ),
            Note(
                date=at(2025, 9, 11, 16, 36),
                sender="HP-2510",
                to=("alba.faria",),
                cc=("mei.tanaka", "owen.tregarth"),
                text="Dear Alba,\n\nall fine but Poland: the rehearsal must be on the 12th.",
            ),
            Note(
                date=at(2025, 9, 11, 16, 50),
                sender="alba.faria",
                to=("HP-2510",),
                cc=("mei.tanaka",),
                text="Dear Ravi,\n\nmoved: Poland rehearses on 12 November.",
            ),
        ),
    ),
)
