# SPDX-License-Identifier: Apache-2.0
"""The mailbox of the whole firm: training, the board, the office."""

from facts.firm import PRACTICES
from facts.people import team_of
from facts.utilisation import TRAINING

from post.talk import Note, Thread, at, html_table

_LEADS = tuple(team_of(practice)[0].key for practice in PRACTICES)
_COURSES = tuple(TRAINING)
_RECEPTION = [
    ["Day", "Reception"],
    ["24 December", "8:00 to 12:00"],
    ["25 to 26 December", "closed"],
    ["29 to 31 December", "9:00 to 15:00"],
    ["1 January", "closed"],
]

THREADS = (
    Thread(
        key="training-autumn",
        subject="Group training in the fourth quarter",
        notes=(
            Note(
                date=at(2025, 10, 2, 9, 30),
                sender="philippa.crane",
                to=_LEADS,
                text="Dear all,\n\nforms for group training reach me by 10 October, please.",
            ),
            Note(
                date=at(2025, 10, 17, 15, 15),
                sender="philippa.crane",
                to=("helena.marsden", "marcus.vane"),
                cc=("dev.mistry",),
                text=f"""\
Helena, Marcus,

{_COURSES[0]} and {_COURSES[1]} are decided and filed. The forms say how. Dev, only what is
approved counts.
""",
                attach=tuple(f"People/Training/{course}.pdf" for course in _COURSES),
            ),
        ),
    ),
    Thread(
        key="board-january",
        subject="Board meeting on 20 January",
        notes=(
            Note(
                date=at(2026, 1, 7, 9, 0),
                sender="nora.quill",
                to=(*_LEADS, "malcolm.strand"),
                text="Dear all,\n\nI make up the pack on Monday the 12th. Is anything missing?",
            ),
            Note(
                date=at(2026, 1, 8, 17, 25),
                sender="gareth.holloway",
                to=("nora.quill",),
                text="Two analysts from April, as a decision. Reasons follow orally.",
            ),
            Note(
                date=at(2026, 1, 12, 8, 50),
                sender="nora.quill",
                to=("constance.pryce",),
                cc=("malcolm.strand",),
                text="The pack is attached, the dashboard lies beside it.",
                attach=("Board/board_pack_2026-01.pptx",),
            ),
        ),
    ),
    Thread(
        key="christmas",
        subject="The office over Christmas",
        notes=(
            Note(
                date=at(2025, 12, 8, 12, 0),
                sender="philippa.crane",
                to=_LEADS,
                html=f"""\
<p>Dear all,</p>
{html_table(_RECEPTION)}
<p>Please pass it on to your teams.</p>
""",
            ),
        ),
    ),
    Thread(
        key="network",
        subject="Network maintenance on Saturday",
        notes=(
            Note(
                date=at(2025, 11, 13, 16, 0),
                sender="nora.quill",
                to=_LEADS,
                html="""\
<p>Dear all,</p>
<p>the network is down on <b>Saturday, 15 November</b>, from 8:00 to 13:00. Files on the shared
drive cannot be opened during that time; mail works on telephones.</p>
""",
            ),
        ),
    ),
    Thread(
        key="hiring",
        subject="Analysts for Operations",
        notes=(
            Note(
                date=at(2025, 11, 27, 10, 10),
                sender="gareth.holloway",
                to=("philippa.crane",),
                cc=("dev.mistry",),
                text="""\
Philippa,

with Lindale going on and Tarnbrook close to its budget we need two more analysts. Can you start
looking before the board has voted?
""",
            ),
            Note(
                date=at(2025, 11, 27, 14, 31),
                sender="philippa.crane",
                to=("gareth.holloway",),
                cc=("dev.mistry",),
                text="Looking yes, offers no. The vote is on 20 January.",
            ),
        ),
    ),
)
