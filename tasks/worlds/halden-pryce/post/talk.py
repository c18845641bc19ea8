# SPDX-License-Identifier: Apache-2.0
"""Threads of mail as they are set down: who wrote when to whom, and what was attached.

People of the firm go by their key, `ruth.castell`; contacts of clients by the engagement's code,
`HP-2505`. Each note answers the one before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.headerregistry import Address
from html import escape
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.firm import DOMAIN
from facts.people import address_of, name_of
from forms.mbox import Attachment, Mail

_SUMMER = datetime(2025, 3, 30, 1), datetime(2025, 10, 26, 2)  # noqa: DTZ001
_CELL = 'style="border:1px solid #999;padding:2px 8px"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One mail of a thread."""

    date: datetime
    sender: str
    to: tuple[str, ...]
    text: str = ""
    """Without the name below it, which is added; empty for a mail that is HTML alone."""
    html: str = ""
    """The body's HTML, without a frame."""
    cc: tuple[str, ...] = ()
    attach: tuple[str, ...] = ()
    """Paths below the drive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Mails under one subject, oldest first."""

    key: str
    subject: str
    notes: tuple[Note, ...]


def at(year: int, month: int, day: int, hour: int, minute: int) -> datetime:
    """London time, with the offset that holds then."""
    moment = datetime(year, month, day, hour, minute)  # noqa: DTZ001
    summer = _SUMMER[0] <= moment < _SUMMER[1]
    return moment.replace(tzinfo=timezone(timedelta(hours=1 if summer else 0)))


def who(key: str) -> Address:
    """The address of a person of the firm or of an engagement's contact."""
    if key in ENGAGEMENTS:
        name, address = ENGAGEMENTS[key].contact
        return Address(name, addr_spec=address)
    return Address(name_of(key), addr_spec=address_of(key))


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as an HTML table; the first is its head."""
    lines = [_html_row(row, "td" if number else "th") for number, row in enumerate(rows)]
    return '<table style="border-collapse:collapse">\n' + "\n".join(lines) + "\n</table>"


def _html_row(row: Sequence[str], tag: str) -> str:
    cells = "".join(f"<{tag} {_CELL}>{escape(text)}</{tag}>" for text in row)
    return f"<tr>{cells}</tr>"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """The same rows as plain text, in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def mails(threads: Sequence[Thread], drive: Path) -> list[Mail]:
    """The mails of the threads, with attachments as they lie on the drive."""
    return [
        _mail(thread, number, note, drive)
        for thread in threads
        for number, note in enumerate(thread.notes, 1)
    ]


def _mail(thread: Thread, number: int, note: Note, drive: Path) -> Mail:
    sender = who(note.sender)
    first_name = sender.display_name.partition(" ")[0]
    files = [
        Attachment(path=f"/{path}", content=(drive / path).read_bytes()) for path in note.attach
    ]
    return Mail(
        id=f"{thread.key}.{number}@{DOMAIN}",
        thread=thread.key,
        date=note.date,
        sender=sender,
        to=tuple(who(key) for key in note.to),
        cc=tuple(who(key) for key in note.cc),
        subject=thread.subject if number == 1 else f"Re: {thread.subject}",
        text=f"{note.text.strip()}\n\n{first_name}\n" if note.text else "",
        html=_page(note.html, first_name) if note.html else "",
        attachments=tuple(files),
        answers=f"{thread.key}.{number - 1}@{DOMAIN}" if number > 1 else "",
    )


def _page(body: str, first_name: str) -> str:
    return f"<html><body>\n{body.strip()}\n<p>{first_name}</p>\n</body></html>\n"
