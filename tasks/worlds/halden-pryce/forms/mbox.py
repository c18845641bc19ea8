# SPDX-License-Identifier: Apache-2.0
"""Mails and the mbox that holds them.

A mail's id, boundaries and dates are its author's: nothing is drawn at random. Plain text is
written as UTF-8 without further encoding, so that a text search finds it; HTML is
quoted-printable and attachments are base64, as mail programs do. `X-Thread-ID`, `X-Body-Format`
and `X-Attachments` are the headers that office simulations of agents read.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

_POLICY = SMTP.clone(linesep="\n", cte_type="8bit", max_line_length=998)
_FROM = re.compile(rb"^(>*From )", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file of the world that travels with a mail."""

    path: str
    """Where the same file lies in the world: `/Clients/Corran/rates.xlsx`."""
    content: bytes

    @property
    def name(self) -> str:
        """The name the receiver sees."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One mail; `date` carries its offset from UTC."""

    id: str
    thread: str
    date: datetime
    sender: Address
    to: tuple[Address, ...]
    cc: tuple[Address, ...] = ()
    subject: str
    text: str
    html: str = ""
    """The same in HTML; empty for a plain mail. With an empty `text` the mail is HTML only."""
    attachments: tuple[Attachment, ...] = ()
    answers: str = ""
    """The id of the mail that this one answers."""


def mbox(mails: Iterable[Mail]) -> bytes:
    """The mails in the order of their dates, in the quoted (`mboxrd`) form."""
    return b"".join(_entry(mail) for mail in sorted(mails, key=lambda mail: (mail.date, mail.id)))


def _entry(mail: Mail) -> bytes:
    envelope = f"From {mail.sender.addr_spec} {_asctime(mail.date)}\n".encode()
    return envelope + _FROM.sub(rb">\1", message(mail).as_bytes(policy=_POLICY)) + b"\n"


def _asctime(date: datetime) -> str:
    utc = date.astimezone(UTC)
    return f"{utc:%a %b} {utc.day:2d} {utc:%H:%M:%S %Y}"


def message(mail: Mail) -> EmailMessage:
    """The mail as it was sent."""
    found = EmailMessage(policy=_POLICY)
    _head(found, mail)
    if mail.text:
        is_ascii = mail.text.isascii()
        found.set_content(mail.text, cte="7bit" if is_ascii else "8bit")
        if mail.html:
            found.add_alternative(mail.html, subtype="html", cte="quoted-printable")
    else:
        found.set_content(mail.html, subtype="html", cte="quoted-printable")
    for attachment in mail.attachments:
        main, _, sub = _kind(attachment.name).partition("/")
        found.add_attachment(
            attachment.content, maintype=main, subtype=sub, filename=attachment.name
        )
    for number, part in enumerate(part for part in found.walk() if part.is_multipart()):
        part.set_boundary(f"=_{_local(mail.id)}_{number}")
    return found


def _head(found: EmailMessage, mail: Mail) -> None:
    found["Date"] = mail.date
    found["From"] = mail.sender
    found["To"] = mail.to
    if mail.cc:
        found["Cc"] = mail.cc
    found["Subject"] = mail.subject
    found["Message-ID"] = f"<{mail.id}>"
    if mail.answers:
        found["In-Reply-To"] = found["References"] = f"<{mail.answers}>"
    found["X-Thread-ID"] = mail.thread
    found["X-Body-Format"] = "html" if mail.html else "plain"
    if mail.attachments:
        found["X-Attachments"] = ", ".join(attachment.path for attachment in mail.attachments)
    found["MIME-Version"] = "1.0"


def _local(id: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "_", id.partition("@")[0])


_KINDS = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pdf": "application/pdf",
    ".csv": "text/csv",
    ".ics": "text/calendar",
}
"""Not `mimetypes`: what that knows depends on the machine."""


def _kind(name: str) -> str:
    return _KINDS["." + name.rpartition(".")[2]]
