# SPDX-License-Identifier: Apache-2.0
"""The mail, chat and calendar of `halden-pryce`, read back and held against the facts."""

import email
import json
import mailbox
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest

pytest.importorskip("pptx", reason="not run: office libraries absent")

from .world_code import world_modules

office, paper, post, people, decoys = world_modules(
    "halden-pryce", ["office", "paper", "post", "facts.people", "facts.decoys"]
)
TODAY = datetime(2026, 1, 12, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("world")
    drive = found / "filesystem"
    drive.mkdir()
    paper.write(drive)
    office.write(drive)
    post.write(drive, found / "apps_data")
    return found


def read(path: Path) -> Iterator[EmailMessage]:
    box = mailbox.mbox(path)
    for key in box.keys():  # noqa: SIM118 iterating gives the messages, folded anew
        message = email.message_from_bytes(box.get_bytes(key), policy=default)
        assert isinstance(message, EmailMessage)
        yield message
    box.close()


@pytest.fixture(scope="module")
def mails(out: Path) -> dict[str, EmailMessage]:
    return {mail["Message-ID"]: mail for mail in read(out / "apps_data/mail/mailbox.mbox")}


def body(mails: dict[str, EmailMessage], key: str) -> str:
    part = mails[f"<{key}@haldenpryce.example>"].get_body(["plain", "html"])
    assert part is not None
    return part.get_content()


def test_about_sixty_mails_some_of_them_html_some_with_files(
    mails: dict[str, EmailMessage],
) -> None:
    assert 60 <= len(mails) <= 80
    assert sum(mail.get_content_type() == "text/html" for mail in mails.values()) >= 3
    assert sum(bool(list(mail.iter_attachments())) for mail in mails.values()) >= 12


def test_the_mailboxes_on_the_drive_hold_the_same_mails(
    out: Path, mails: dict[str, EmailMessage]
) -> None:
    exported = [
        mail["Message-ID"]
        for path in (out / "filesystem/Correspondence").glob("*.mbox")
        for mail in read(path)
    ]
    assert sorted(exported) == sorted(mails)


def test_an_attachment_is_the_file_of_the_world(out: Path, mails: dict[str, EmailMessage]) -> None:
    for mail in mails.values():
        paths = [path for path in (mail["X-Attachments"] or "").split(", ") if path]
        parts = list(mail.iter_attachments())
        for path, part in zip(paths, parts, strict=True):
            assert part.get_content() == (out / f"filesystem{path}").read_bytes()


def test_every_mail_answers_one_that_was_there_before(mails: dict[str, EmailMessage]) -> None:
    for mail in mails.values():
        if mail["In-Reply-To"]:
            before = mails[mail["In-Reply-To"]]
            assert before["Date"].datetime < mail["Date"].datetime
            assert before["X-Thread-ID"] == mail["X-Thread-ID"]


def test_no_mail_is_later_than_the_worlds_day(mails: dict[str, EmailMessage]) -> None:
    for mail in mails.values():
        assert datetime(2025, 1, 1, tzinfo=UTC) < mail["Date"].datetime < TODAY
        assert mail["Date"].datetime.weekday() < 5


def test_everyone_in_the_mail_is_known(mails: dict[str, EmailMessage]) -> None:
    firm = {people.address_of(key) for key in (*people.FEE_EARNERS, *people.STAFF)}
    for mail in mails.values():
        for header in ("From", "To", "Cc"):
            for person in mail[header].addresses if mail[header] else ():
                inside = person.domain == "haldenpryce.example"
                assert inside == (person.addr_spec in firm)


def test_the_wrong_discount_is_corrected_by_a_later_mail(mails: dict[str, EmailMessage]) -> None:
    first, last = body(mails, "lindale-discount.1"), body(mails, "lindale-discount.3")
    assert re.findall(r"[\d.]+ %", first) == ["6 %"]
    assert re.findall(r"[\d.]+ %", last) == ["7.5 %"]


def test_the_first_review_is_withdrawn_without_naming_the_wrong_invoice(
    mails: dict[str, EmailMessage],
) -> None:
    assert f"{decoys.tarnbrook_july():,.2f}" in body(mails, "tarnbrook-review.1")
    withdrawn = body(mails, "tarnbrook-review.3")
    assert "withdraw" in withdrawn
    assert "INV-" not in withdrawn
    assert "June" not in withdrawn


def test_the_status_report_travels_with_its_margin(mails: dict[str, EmailMessage]) -> None:
    assert "55.2 %" in body(mails, "merrowfield-margin.1")


def test_preliminary_hours_are_told_and_then_set_aside(mails: dict[str, EmailMessage]) -> None:
    assert "2,975 hours, 886 of them" in body(mails, "skelwith-steering.3")
    assert "not those" in body(mails, "skelwith-steering.4")


@pytest.mark.parametrize("root", ["apps_data/chat", "filesystem/Correspondence/chat"])
def test_chat_messages_are_written_by_members_in_order(out: Path, root: str) -> None:
    spaces = sorted((out / root / "Groups").iterdir())
    assert len(spaces) == 3
    for space in spaces:
        info = json.loads((space / "group_info.json").read_text("utf-8"))
        messages = json.loads((space / "messages.json").read_text("utf-8"))["messages"]
        members = {member["email"] for member in info["members"]}
        dates = [
            datetime.strptime(found["created_date"], "%A, %B %d, %Y at %I:%M:%S %p UTC")  # noqa: DTZ007
            for found in messages
        ]
        assert dates == sorted(dates)
        assert {found["creator"]["email"] for found in messages} <= members
        assert len({found["message_id"] for found in messages}) == len(messages)


def test_everyone_of_the_firm_is_a_user_of_the_chat(out: Path) -> None:
    users = [
        json.loads(path.read_text("utf-8"))["user"]["email"]
        for path in (out / "apps_data/chat/Users").glob("*/user_info.json")
    ]
    assert len(users) == len(people.FEE_EARNERS) + len(people.STAFF)


def test_the_calendar_is_the_same_in_both_places_and_every_event_is_whole(out: Path) -> None:
    content = (out / "apps_data/calendar/calendar.ics").read_bytes()
    assert content == (out / "filesystem/Correspondence/calendar.ics").read_bytes()
    events = content.decode().split("BEGIN:VEVENT\r\n")[1:]
    assert len(events) >= 12
    for event in events:
        start, end = (re.search(rf"{name};[^:]*:(\S+)", event) for name in ("\nDTSTART", "\nDTEND"))
        assert start
        assert end
        assert start[1] < end[1]
    keys = [
        (re.search(r"UID:(\S+)", event), re.search(r"RECURRENCE-ID\S*", event)) for event in events
    ]
    named = [(uid and uid[1], moved and moved[0]) for uid, moved in keys]
    assert len(set(named)) == len(named)
