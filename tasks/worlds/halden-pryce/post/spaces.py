# SPDX-License-Identifier: Apache-2.0
"""The chat: three spaces of the firm."""

from datetime import datetime

from facts.people import FEE_EARNERS, PROMOTED, STAFF, name_of, team_of
from forms.takeout import Post, Space

from post.talk import at, who

_DIGITAL = tuple(person.key for person in team_of("Digital"))
_FINANCE = ("malcolm.strand", "bea.lockwood", "imogen.tate", "dev.mistry")
_LINDALE = ("gareth.holloway", "ruth.castell", "simone.archer", "aoife.kerrigan", "freya.lindqvist")


def _post(
    topic: int, date: datetime, author: str, text: str, liked_by: tuple[str, ...] = ()
) -> Post:
    reactions = {"👍": tuple(who(key) for key in liked_by)} if liked_by else None
    return Post(topic=topic, date=date, author=who(author), text=text, reactions=reactions)


SPACES = (
    Space(
        name="Year end",
        members=tuple(who(key) for key in _FINANCE),
        posts=(
            _post(1, at(2025, 12, 19, 17, 8), "dev.mistry",
                  "Hours taken, Finance/timesheets_2025_preliminary.xlsx. Six people are late."),
            _post(1, at(2025, 12, 19, 17, 14), "bea.lockwood",
                  "Then nobody invoices from it. The ledger is what counts.", ("imogen.tate",)),
            _post(2, at(2026, 1, 5, 10, 25), "dev.mistry", "The late ones are in, list by mail."),
            _post(2, at(2026, 1, 9, 14, 2), "bea.lockwood", "Ledger closed.",
                  ("dev.mistry", "malcolm.strand")),
            _post(3, at(2026, 1, 9, 16, 40), "imogen.tate",
                  "Accruals: is Merrowfield at 7.5 % or what the variation says?"),
            _post(3, at(2026, 1, 9, 16, 44), "bea.lockwood",
                  "A variation letter ranks before the letter. The register is behind.",
                  ("malcolm.strand",)),
        ),
    ),
    Space(
        name="Digital",
        members=tuple(who(key) for key in _DIGITAL),
        posts=(
            _post(1, at(2025, 6, 27, 12, 11), "tom.eversley",
                  f"{name_of(next(iter(PROMOTED)))}: manager from July!", ("ben.oyelaran",)),
            _post(1, at(2025, 6, 27, 12, 12), "nadia.petrov", "Cake on Tuesday."),
            _post(2, at(2025, 12, 22, 9, 2), "chloe.winters",
                  "My timesheet for last week is still open, will enter it after Christmas."),
            _post(2, at(2025, 12, 22, 9, 6), "tom.eversley", "How many hours?"),
            _post(2, at(2025, 12, 22, 9, 30), "chloe.winters", "About three days."),
            _post(3, at(2026, 1, 9, 15, 20), "tom.eversley",
                  "Steering pack: ledger hours, budget of the engagement letter. Who has an hour?"),
        ),
    ),
    Space(
        name="Lindale",
        members=tuple(who(key) for key in _LINDALE),
        posts=(
            _post(1, at(2025, 12, 17, 11, 30), "gareth.holloway", "Extension letter is out."),
            _post(1, at(2025, 12, 18, 15, 40), "simone.archer", "And signed.",
                  ("ruth.castell", "aoife.kerrigan")),
            _post(2, at(2026, 1, 8, 9, 0), "ruth.castell",
                  "I told Jonas the wrong discount on Monday. Corrected by mail just now."),
            _post(2, at(2026, 1, 8, 9, 3), "freya.lindqvist", "Happens."),
        ),
    ),
)  # fmt: skip
PEOPLE = tuple(who(key) for key in (*FEE_EARNERS, *STAFF))
