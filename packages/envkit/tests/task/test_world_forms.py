# SPDX-License-Identifier: Apache-2.0
"""The writers in `tasks/worlds/halden-pryce/forms`, on a handful of made-up facts."""

import email
import io
import json
import mailbox
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from email.headerregistry import Address
from email.policy import default
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pptx", reason="not run: office libraries absent")

import openpyxl
from pptx import Presentation

from .recalculate import recalculate
from .world_code import world_modules

STEADY = settings(deadline=None, derandomize=True, max_examples=60)
archive, workbook, deck, mbox, takeout, ics = world_modules(
    "halden-pryce",
    [f"forms.{name}" for name in ("archive", "workbook", "deck", "mbox", "takeout", "ics")],
)
SAVED = datetime(2026, 1, 12, 8, tzinfo=UTC)
BST = timezone(timedelta(hours=1))
ANN = Address("Ann Béart", "ann", "firm.example")
BOB = Address("Bob Lee", "bob", "client.example")


def clocks(content: bytes) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]] = set()
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        for entry in parts.infolist():
            found.add(entry.date_time)
            inner = parts.read(entry)
            if inner.startswith(b"PK"):
                found |= clocks(inner)
    return found


def write_workbook(path: Path) -> None:
    with workbook.book(path, saved=SAVED, author="Ann") as book:
        rates = book.sheet("Rates")
        rates.head("Rates", "A3", ("Grade", "Rate"), (20, 10))
        rates.row("A4", ("Manager", 260))
        rates.row("A5", ("Analyst", 130))
        rates.put("A6", date(2025, 7, 1), workbook.DAY)
        rates.note("B4", "As of July", "Ann")
        book.name("ManagerRate", "Rates!$B$4")
        fees = book.sheet("Fees")
        fees.row("A1", ("Manager", 10, workbook.Calc("=B1*ManagerRate", 10 * rates.at("B4"))))
        fees.row("A2", ("Analyst", 20, workbook.Calc("=B2*Rates!B5", 20 * rates.at("B5"))))
        fees.put("C3", fees.sum("C1:C2"), workbook.TOTAL, workbook.MONEY)
        book.sheet("Workings", hidden=True).put("A1", workbook.Calc("=Fees!C3/2", 2600.0))


def write_deck(path: Path) -> None:
    with deck.deck(path, saved=SAVED, author="Ann", title="Fees") as slides:
        slides.cover("Fees", "2025")
        page = slides.page("By month")
        page.chart("Fees", ("Jan", "Feb"), {"Fees": (1.5, 2.5)}, deck.LEFT, title="Fees")
        page.table("Table", (("Month", "Fees"), ("Jan", "1.5")), deck.RIGHT)
        page.group("Steps", (("first", "Plan"), ("second", "Do")), deck.FOOT)
        page.notes("Say this.")


@pytest.mark.parametrize(
    ("name", "write"), [("fees.xlsx", write_workbook), ("fees.pptx", write_deck)]
)
def test_an_office_file_keeps_the_worlds_time_alone(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert clocks(content) == {(1980, 1, 1, 0, 0, 0)}
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        core = parts.read("docProps/core.xml").decode()
    assert core.count("2026-01-12T08:00:00Z") == core.count("</dcterms:") == 2


def test_a_part_that_is_an_office_file_is_settled_too(tmp_path: Path) -> None:
    write_deck(tmp_path / "fees.pptx")
    with zipfile.ZipFile(tmp_path / "fees.pptx") as parts:
        (inner,) = [name for name in parts.namelist() if name.endswith(".xlsx")]
        with zipfile.ZipFile(io.BytesIO(parts.read(inner))) as book:
            assert book.read("docProps/core.xml").count(b"2026-01-12T08:00:00Z") == 2


def test_formulas_carry_the_values_that_they_give(tmp_path: Path) -> None:
    write_workbook(tmp_path / "fees.xlsx")
    shown = openpyxl.load_workbook(tmp_path / "fees.xlsx", data_only=True)
    found = recalculate(openpyxl.load_workbook(tmp_path / "fees.xlsx"))
    assert len(found) == 4
    for (sheet, cell), value in found.items():
        assert shown[sheet][cell].value == pytest.approx(value)
    assert shown["Fees"]["C3"].value == 5_200


def test_a_workbook_keeps_its_notes_names_dates_and_hidden_sheets(tmp_path: Path) -> None:
    write_workbook(tmp_path / "fees.xlsx")
    book = openpyxl.load_workbook(tmp_path / "fees.xlsx")
    assert book["Rates"]["B4"].comment.text == "As of July"
    assert book["Rates"]["A6"].value == datetime(2025, 7, 1)  # noqa: DTZ001
    assert book.defined_names["ManagerRate"].attr_text == "Rates!$B$4"
    assert [sheet.sheet_state for sheet in book] == ["visible", "visible", "hidden"]
    assert book["Fees"]["C3"].number_format == "#,##0;(#,##0);-"


def test_a_deck_keeps_chart_numbers_tables_groups_and_notes(tmp_path: Path) -> None:
    write_deck(tmp_path / "fees.pptx")
    slide = Presentation(str(tmp_path / "fees.pptx")).slides[1]
    shapes = {shape.name: shape for shape in slide.shapes}
    assert list(shapes["Fees"].chart.plots[0].series[0].values) == [1.5, 2.5]
    assert shapes["Table"].table.cell(1, 1).text == "1.5"
    assert [shape.text_frame.text for shape in shapes["Steps"].shapes] == ["Plan", "Do"]
    assert slide.notes_slide.notes_text_frame.text == "Say this."


def mail(text: str = "Hello.\n", html: str = "", attachments: tuple[object, ...] = ()) -> object:
    return mbox.Mail(
        id="m1@firm.example",
        thread="fees",
        date=datetime(2025, 7, 1, 9, 5, tzinfo=BST),
        sender=ANN,
        to=(BOB,),
        cc=(ANN, BOB),
        subject="Fees £",
        text=text,
        html=html,
        attachments=attachments,
        answers="m0@firm.example",
    )


def read_box(path: Path, content: bytes) -> list[mailbox.mboxMessage]:
    path.write_bytes(content)
    box = mailbox.mbox(path)
    found = list(box)
    box.close()
    return found


def test_a_mail_comes_back_with_all_its_parts(tmp_path: Path) -> None:
    table = "<table><tr><td>£ 5</td></tr></table>\n"
    attached = mbox.Attachment(path="/Clients/rates.xlsx", content=bytes(range(256)))
    (raw,) = read_box(tmp_path / "box", mbox.mbox([mail("Fünf £\n", table, (attached,))]))
    found = email.message_from_bytes(raw.as_bytes(), policy=default)
    assert found.get_body(["plain"]).get_content() == "Fünf £\n"
    assert found.get_body(["html"]).get_content() == table
    (part,) = found.iter_attachments()
    assert (part.get_filename(), part.get_content()) == ("rates.xlsx", bytes(range(256)))
    assert found["Subject"] == "Fees £"
    assert found["Date"].datetime == datetime(2025, 7, 1, 9, 5, tzinfo=BST)
    assert [person.display_name for person in found["Cc"].addresses] == ["Ann Béart", "Bob Lee"]
    headers = ("Message-ID", "In-Reply-To", "X-Thread-ID", "X-Body-Format", "X-Attachments")
    assert [found[name] for name in headers] == [
        "<m1@firm.example>", "<m0@firm.example>", "fees", "html", "/Clients/rates.xlsx",
    ]  # fmt: skip


def test_a_mail_may_be_html_alone() -> None:
    found = mbox.message(mail("", "<p>Fünf</p>\n"))
    assert found.get_content_type() == "text/html"
    assert found.get_content() == "<p>Fünf</p>\n"


def test_plain_text_stays_searchable_in_the_file() -> None:
    assert "Fünf £".encode() in mbox.mbox([mail("Fünf £\n")])


def test_the_envelope_gives_the_date_in_utc() -> None:
    assert mbox.mbox([mail()]).startswith(b"From ann@firm.example Tue Jul  1 08:05:00 2025\n")


@STEADY
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["From me", ">From", "", ".", "£", "x" * 1_200, "a"]), min_size=1),
        max_size=4,
    )
)
def test_no_line_of_a_mail_begins_another(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]]
) -> None:
    bodies = ["\n".join(lines) + "\n" for lines in texts]
    content = mbox.mbox([mail(body) for body in bodies])
    found = read_box(tmp_path_factory.mktemp("mail") / "box", content)
    assert len(found) == len(bodies)


def test_mails_lie_in_the_order_of_their_dates(tmp_path: Path) -> None:
    later = mbox.Mail(
        id="m0@firm.example",
        thread="fees",
        date=datetime(2025, 7, 1, 8, 30, tzinfo=UTC),
        sender=BOB,
        to=(ANN,),
        subject="Re",
        text="Yes.\n",
    )
    found = read_box(tmp_path / "box", mbox.mbox([later, mail()]))
    assert [each["Message-ID"] for each in found] == ["<m1@firm.example>", "<m0@firm.example>"]


def test_an_unknown_kind_of_attachment_is_refused() -> None:
    with pytest.raises(KeyError):
        mbox.message(mail(attachments=(mbox.Attachment(path="/a.exe", content=b""),)))


def test_a_space_comes_out_as_chat_exports_it() -> None:
    later = datetime(2025, 10, 8, 12, 41, 52, tzinfo=UTC)
    posts = (
        takeout.Post(topic=2, date=later, author=BOB, text="b"),
        takeout.Post(
            topic=1, date=datetime(2025, 7, 1, 0, 5, tzinfo=BST), author=ANN, text="a",
            reactions={"👍": (BOB,)},
        ),
    )  # fmt: skip
    space = takeout.Space(name="Fees", members=(ANN, BOB), posts=posts)
    files = {name: json.loads(text) for name, text in takeout.takeout([space], [ANN, BOB]).items()}
    assert set(files) == {
        "Groups/Space Fees/group_info.json",
        "Groups/Space Fees/messages.json",
        "Users/User 1/user_info.json",
        "Users/User 2/user_info.json",
    }
    first, second = files["Groups/Space Fees/messages.json"]["messages"]
    assert first["created_date"] == "Monday, June 30, 2025 at 11:05:00 PM UTC"
    assert second["created_date"] == "Wednesday, October 8, 2025 at 12:41:52 PM UTC"
    assert first["message_id"] == "Space Fees/topic-1/1"
    assert first["reactions"][0]["reactor_emails"] == ["bob@client.example"]
    assert second["creator"] == {
        "name": "Bob Lee", "email": "bob@client.example", "user_type": "Human",
    }  # fmt: skip


def event(**changes: object) -> bytes:
    settings = {
        "id": "e1@firm.example",
        "summary": "Review; Lee, Ann",
        "start": datetime(2025, 7, 1, 9),  # noqa: DTZ001
        "end": datetime(2025, 7, 1, 10),  # noqa: DTZ001
        "organizer": ANN,
        "attendees": (BOB,),
        "stamp": SAVED,
    }
    return ics.calendar([ics.Event(**(settings | changes))], "Ann")


def unfolded(content: bytes) -> list[str]:
    return content.replace(b"\r\n ", b"").decode().split("\r\n")


def test_an_event_has_its_zone_people_and_escaped_text() -> None:
    lines = unfolded(event(description="One\nTwo", rule="FREQ=WEEKLY;COUNT=3"))
    assert "DTSTART;TZID=Europe/London:20250701T090000" in lines
    assert "SUMMARY:Review\\; Lee\\, Ann" in lines
    assert "DESCRIPTION:One\\nTwo" in lines
    assert "RRULE:FREQ=WEEKLY;COUNT=3" in lines
    assert 'ATTENDEE;CN="Bob Lee":mailto:bob@client.example' in lines
    assert "DTSTAMP:20260112T080000Z" in lines


def test_an_event_of_whole_days_has_dates() -> None:
    lines = unfolded(event(start=date(2025, 12, 24), end=date(2026, 1, 2)))
    assert "DTSTART;VALUE=DATE:20251224" in lines
    assert "DTEND;VALUE=DATE:20260102" in lines


@STEADY
@given(text=st.text(st.sampled_from("aé👍,;\\ "), max_size=200))
def test_no_line_of_a_calendar_is_longer_than_75_bytes(text: str) -> None:
    content = event(summary=text)
    assert max(len(line) for line in content.split(b"\r\n")) <= 75
    escaped = text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    assert f"SUMMARY:{escaped}" in unfolded(content)
