# SPDX-License-Identifier: Apache-2.0
"""The calendar: meetings of the firm around the turn of the year."""

from datetime import date, datetime

from facts.engagements import ENGAGEMENTS
from facts.firm import DOMAIN, PRACTICES
from facts.people import team_of
from forms.ics import Event

from post.talk import at, who

_LEADS = tuple(team_of(practice)[0].key for practice in PRACTICES)


def _time(year: int, month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute)  # noqa: DTZ001 the calendar names the zone


def _event(
    key: str,
    summary: str,
    start: datetime | date,
    end: datetime | date,
    people: tuple[str, ...],
    stamp: datetime,
    **more: object,
) -> Event:
    organizer, *others = people
    return Event(
        id=f"{key}@{DOMAIN}",
        summary=summary,
        start=start,
        end=end,
        organizer=who(organizer),
        attendees=tuple(who(key) for key in others),
        stamp=stamp,
        **more,  # pyright: ignore[reportArgumentType]
    )


_MONDAY = ("constance.pryce", *_LEADS, "malcolm.strand")
EVENTS = (
    _event(
        "partners",
        "Partners' meeting",
        _time(2025, 9, 1, 8, 30),
        _time(2025, 9, 1, 9, 15),
        _MONDAY,
        at(2025, 8, 20, 9, 0),
        location="Room Cordwain",
        rule="FREQ=WEEKLY;BYDAY=MO;UNTIL=20260330T073000Z",
        except_on=(_time(2025, 12, 29, 8, 30),),
    ),
    _event(
        "partners",
        "Partners' meeting (moved)",
        _time(2026, 1, 6, 8, 30),
        _time(2026, 1, 6, 9, 15),
        _MONDAY,
        at(2025, 12, 19, 12, 0),
        location="Room Cordwain",
        moved_from=_time(2026, 1, 5, 8, 30),
        sequence=1,
    ),
    _event(
        "board-2025-09",
        "Board",
        _time(2025, 9, 16, 14),
        _time(2025, 9, 16, 16, 30),
        ("nora.quill", "constance.pryce", *_LEADS, "malcolm.strand", "bea.lockwood"),
        at(2025, 7, 1, 9, 0),
        location="Room Cordwain",
    ),
    _event(
        "board-2026-01",
        "Board",
        _time(2026, 1, 20, 14),
        _time(2026, 1, 20, 16, 30),
        ("nora.quill", "constance.pryce", *_LEADS, "malcolm.strand", "bea.lockwood"),
        at(2025, 12, 1, 9, 0),
        location="Room Cordwain",
        description="Pack on Monday 12 January.",
    ),
    _event(
        "cut-off",
        "Hours are taken for the preliminary figures",
        date(2025, 12, 19),
        date(2025, 12, 20),
        ("dev.mistry", "bea.lockwood"),
        at(2025, 12, 1, 9, 0),
    ),
    _event(
        "ledger",
        "Hours ledger 2025 closes",
        _time(2026, 1, 9, 14),
        _time(2026, 1, 9, 14, 30),
        ("bea.lockwood", "dev.mistry", "imogen.tate"),
        at(2025, 12, 1, 9, 5),
    ),
    _event(
        "accruals",
        "Accruals for December are due",
        _time(2026, 1, 13, 17),
        _time(2026, 1, 13, 17, 30),
        ("malcolm.strand", "bea.lockwood", "imogen.tate"),
        at(2026, 1, 9, 15, 45),
    ),
    _event(
        "invoicing",
        "December is invoiced",
        date(2026, 1, 15),
        date(2026, 1, 16),
        ("imogen.tate", "bea.lockwood"),
        at(2025, 12, 1, 9, 10),
    ),
    _event(
        "lindale-call",
        f"{ENGAGEMENTS['HP-2505'].client}: terms of the extension",
        _time(2025, 12, 17, 9, 30),
        _time(2025, 12, 17, 10),
        ("ruth.castell", "HP-2505", "gareth.holloway"),
        at(2025, 12, 12, 11, 0),
        location="By telephone",
    ),
    _event(
        "skelwith-steering",
        f"{ENGAGEMENTS['HP-2508'].client}: steering meeting",
        _time(2026, 1, 15, 10),
        _time(2026, 1, 15, 11, 30),
        ("tom.eversley", "marcus.vane", "HP-2508"),
        at(2025, 12, 5, 16, 5),
        description="Pack with hours at 31 December; budget of the engagement letter.",
    ),
    _event(
        "penhallow-interim",
        f"{ENGAGEMENTS['HP-2506'].client}: interim findings",
        _time(2025, 11, 20, 13),
        _time(2025, 11, 20, 15),
        ("owen.tregarth", "helena.marsden", "HP-2506"),
        at(2025, 11, 3, 10, 0),
    ),
    _event(
        "steering-cancelled",
        f"{ENGAGEMENTS['HP-2504'].client}: steering meeting",
        _time(2025, 12, 22, 10),
        _time(2025, 12, 22, 11),
        ("leila.haddad", "marcus.vane", "HP-2504"),
        at(2025, 12, 18, 9, 0),
        sequence=1,
        status="CANCELLED",
    ),
    _event(
        "christmas",
        "Office closed",
        date(2025, 12, 25),
        date(2025, 12, 27),
        ("philippa.crane",),
        at(2025, 12, 8, 12, 0),
    ),
)
