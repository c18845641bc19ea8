# SPDX-License-Identifier: Apache-2.0
"""A calendar as RFC 5545 writes it: CRLF, lines folded at 75 bytes, times in a named zone.

Times are given in the calendar's zone, without an offset; `zone` is its `VTIMEZONE`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.headerregistry import Address

LONDON = """\
BEGIN:VTIMEZONE
TZID:Europe/London
BEGIN:DAYLIGHT
DTSTART:19810329T010000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0000
TZOFFSETTO:+0100
TZNAME:BST
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:19961027T020000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0000
TZNAME:GMT
END:STANDARD
END:VTIMEZONE"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry: with times it is a meeting, with dates it fills whole days, `end` excluded."""

    id: str
    summary: str
    start: datetime | date
    end: datetime | date
    organizer: Address
    attendees: tuple[Address, ...] = ()
    location: str = ""
    description: str = ""
    stamp: datetime
    """When the entry was last changed, with its offset."""
    rule: str = ""
    """`FREQ=WEEKLY;COUNT=6`; empty for a single entry."""
    except_on: tuple[datetime, ...] = ()
    moved_from: datetime | None = None
    """For one occurrence of a series that was moved: when it would have been."""
    sequence: int = 0
    status: str = "CONFIRMED"


def calendar(events: Iterable[Event], name: str, zone: str = LONDON) -> bytes:
    """The whole calendar, entries in the order given."""
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", f"PRODID:-//{name}//Calendar//EN", "METHOD:PUBLISH"]
    lines = [*head, f"X-WR-CALNAME:{_text(name)}", *zone.split("\n")]
    tzid = re.search(r"TZID:(.+)", zone)
    assert tzid is not None
    for event in events:
        lines += _event(event, tzid[1])
    return b"".join(_folded(line) for line in [*lines, "END:VCALENDAR"])


def _event(event: Event, tzid: str) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield f"UID:{event.id}"
    yield f"DTSTAMP:{event.stamp.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    if event.moved_from:
        yield _time("RECURRENCE-ID", event.moved_from, tzid)
    yield _time("DTSTART", event.start, tzid)
    yield _time("DTEND", event.end, tzid)
    if event.rule:
        yield f"RRULE:{event.rule}"
    for skipped in event.except_on:
        yield _time("EXDATE", skipped, tzid)
    yield f"SUMMARY:{_text(event.summary)}"
    if event.location:
        yield f"LOCATION:{_text(event.location)}"
    if event.description:
        yield f"DESCRIPTION:{_text(event.description)}"
    yield _person("ORGANIZER", event.organizer)
    for person in event.attendees:
        yield _person("ATTENDEE", person)
    yield f"SEQUENCE:{event.sequence}"
    yield f"STATUS:{event.status}"
    yield "END:VEVENT"


def _time(name: str, moment: datetime | date, tzid: str) -> str:
    if isinstance(moment, datetime):
        return f"{name};TZID={tzid}:{moment:%Y%m%dT%H%M%S}"
    return f"{name};VALUE=DATE:{moment:%Y%m%d}"


def _person(name: str, person: Address) -> str:
    return f'{name};CN="{person.display_name}":mailto:{person.addr_spec}'


def _text(text: str) -> str:
    return re.sub(r"([\\;,])", r"\\\1", text).replace("\n", "\\n")


def _folded(line: str) -> bytes:
    parts: list[bytes] = [b""]
    for character in line:
        encoded = character.encode()
        if len(parts[-1]) + len(encoded) > 75:
            parts.append(b" ")
        parts[-1] += encoded
    return b"\r\n".join(parts) + b"\r\n"
