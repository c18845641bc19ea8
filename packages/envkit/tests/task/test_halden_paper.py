# SPDX-License-Identifier: Apache-2.0
"""The PDF files of `halden-pryce`, read back and held against the facts."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

pytest.importorskip("reportlab", reason="not run: office libraries absent")

import pdfplumber
from pdfplumber.utils.pdfinternals import decode_text, resolve

from .world_code import world_modules

paper, firm, people, rates, engagements, hours, fees, invoices, utilisation, decoys = world_modules(
    "halden-pryce",
    [
        "paper", "facts.firm", "facts.people", "facts.rates", "facts.engagements", "facts.hours",
        "facts.fees", "facts.invoices", "facts.utilisation", "facts.decoys",
    ],
)  # fmt: skip
LETTERS = ("HP-2501", "HP-2504", "HP-2505", "HP-2508")


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("drive")
    paper.write(found)
    return found


def text(path: Path) -> str:
    with pdfplumber.open(path) as pdf:
        return " ".join(" ".join(page.extract_text() or "" for page in pdf.pages).split())


def table(path: Path) -> list[list[str]]:
    """The ruled table of a file, over all of its pages, without the repeated headers."""
    with pdfplumber.open(path) as pdf:
        header, *rows = pdf.pages[0].extract_table()
        for page in pdf.pages[1:]:
            again, *more = page.extract_table()
            assert again == header
            rows += more
    return [header, *rows]


def amount(shown: str) -> Decimal:
    return Decimal(re.sub(r"[^\d.-]", "", shown) or "0")


def folder(drive: Path, code: str) -> Path:
    return drive / "Engagements" / engagements.ENGAGEMENTS[code].folder


@pytest.mark.parametrize(
    ("name", "card"),
    [("2025-A", rates.CARD_A), ("2025-B", rates.CARD_B), ("2026-A", rates.CARD_2026)],
)
def test_a_rate_card_shows_the_card(drive: Path, name: str, card: dict[str, int]) -> None:
    _, *rows = table(drive / f"Rates/rate_card_{name}.pdf")
    assert {grade: int(rate) for grade, rate, _ in rows} == card
    assert all(amount(a_day) == Decimal(rate) * Decimal("7.5") for _, rate, a_day in rows)


def test_cost_rates_stand_in_a_table_without_lines(drive: Path) -> None:
    path = drive / "Rates/cost_rates_2025.pdf"
    with pdfplumber.open(path) as pdf:
        assert pdf.pages[0].lines == pdf.pages[0].rects == []
    for grade, rate in rates.COST.items():
        assert f"{grade} {rate}" in text(path)


def test_the_ledger_runs_over_pages_that_repeat_its_header(drive: Path) -> None:
    with pdfplumber.open(drive / "Finance/hours_ledger_2025.pdf") as pdf:
        assert len(pdf.pages) >= 3
    assert table(drive / "Finance/hours_ledger_2025.pdf")[0][:4] == [
        "Engagement", "Person", "Grade", "Jan",
    ]  # fmt: skip


def test_the_ledger_shows_every_hour_under_the_grade_held(drive: Path) -> None:
    _, *rows = table(drive / "Finance/hours_ledger_2025.pdf")
    shown = {
        (code, person, grade, month): int(amount(cell))
        for code, person, grade, *cells, _ in rows
        for month, cell in enumerate(cells, 1)
        if person != "All" and amount(cell)
    }
    assert shown == {
        (code, people.name_of(person), people.grade_in(person, month), month): worked
        for code, team in hours.HOURS.items()
        for person, months in team.items()
        for month, worked in enumerate(months, 1)
        if worked
    }


def test_rows_and_engagements_of_the_ledger_add_up(drive: Path) -> None:
    _, *rows = table(drive / "Finance/hours_ledger_2025.pdf")
    sums: dict[str, list[int]] = {}
    for code, person, _, *cells in rows:
        *months, total = (int(amount(cell)) for cell in cells)
        assert sum(months) == total
        if person == "All":
            assert months == sums[code]
        else:
            sums[code] = [a + b for a, b in zip(sums.get(code, [0] * 12), months, strict=True)]
    assert set(sums) == set(engagements.ENGAGEMENTS)


def test_nobody_works_more_than_a_month_has(drive: Path) -> None:
    for month in range(1, 13):
        for person in people.FEE_EARNERS:
            worked = sum(team.get(person, (0,) * 12)[month - 1] for team in hours.HOURS.values())
            assert worked <= firm.standard_hours(month), (person, month)


def test_work_lies_within_the_months_of_the_engagement() -> None:
    for code, team in hours.HOURS.items():
        first, last = engagements.ENGAGEMENTS[code].months
        for months in team.values():
            assert not any(months[: first - 1] + months[last:]), code


@pytest.mark.parametrize("code", LETTERS)
def test_a_letter_states_discount_limit_and_budget(drive: Path, code: str) -> None:
    terms = engagements.ENGAGEMENTS[code]
    path = folder(drive, code) / "engagement_letter.pdf"
    found = text(path)
    assert f"reduced by {terms.discount_permille / 10:g} %" in found
    assert f"do not exceed {terms.expense_limit_permille / 10:g} % of its fees" in found
    assert ("do not exceed 600,000 pounds" in found) == (code == "HP-2508")
    _, *rows, total = table(path)
    assert {grade: int(amount(cell)) for grade, cell in rows} == terms.budget_hours
    assert int(amount(total[1])) == sum(terms.budget_hours.values())


def test_the_variation_letter_changes_the_discount_and_says_from_when(drive: Path) -> None:
    found = text(folder(drive, "HP-2504") / "variation_letter_1.pdf")
    assert "up to 31 August 2025 the rates of the card are reduced by 7.5 %" in found
    assert "from 1 September 2025 they are reduced by 18 %" in found


@pytest.mark.parametrize("month", range(4, 10))
def test_an_invoice_adds_up_and_follows_the_terms(drive: Path, month: int) -> None:
    invoice = invoices.invoice_of("HP-2501", month)
    path = drive / f"Finance/Invoices/{invoice.number}.pdf"
    _, *rows = table(path)
    assert [(grade, int(rate)) for grade, _, rate, _ in rows] == [
        (grade, rate) for grade, rate in rates.card_in(month).items() if grade != "Principal"
    ]
    time = sum((amount(shown) for *_, shown in rows), Decimal())
    assert all(amount(worked) * amount(rate) == amount(shown) for _, worked, rate, shown in rows)
    found = text(path)
    steps = ("Fees", "Expenses", "Net", r"Value added tax 20 %", "To pay")
    fee, expenses, net, vat, total = (
        amount(re.search(rf"{step} ([\d,.]+)", found)[1]) for step in steps
    )
    assert fee == time * Decimal("0.92")
    assert net == fee + expenses
    assert vat == fees.pence(net / 5)
    assert total == net + vat


def test_one_invoice_alone_charges_more_than_the_ledger_has(drive: Path) -> None:
    over = {}
    for month in range(4, 10):
        number = invoices.invoice_of("HP-2501", month).number
        _, *rows = table(drive / f"Finance/Invoices/{number}.pdf")
        worked = hours.by_grade("HP-2501", month)
        over |= {
            (number, grade): int(charged) - worked[grade]
            for grade, charged, *_ in rows
            if int(charged) != worked[grade]
        }
    assert over == {("INV-2025-121", "Consultant"): 14}


def test_no_invoice_charges_expenses_above_the_limit_of_its_letter() -> None:
    for invoice in invoices.INVOICES:
        limit = engagements.ENGAGEMENTS[invoice.code].expense_limit_permille
        assert invoice.expenses * 1000 <= invoice.fees * limit, invoice.number


def test_the_final_report_has_the_hours_of_the_closed_ledger(drive: Path) -> None:
    _, *rows = table(drive / "Finance/Utilisation/utilisation_2025-Q4_v3_final.pdf")
    found = {(name, month): tuple(map(amount, cells)) for name, month, *cells in rows}
    assert found == {
        (name, firm.MONTHS[month - 1]): (
            utilisation.billable_hours(name, month),
            Decimal(utilisation.contract_hours(name, month)),
            utilisation.LEAVE[name][month],
        )
        for name in firm.PRACTICES
        for month in utilisation.QUARTER
    }


def test_each_version_of_the_report_blames_another_practice(drive: Path) -> None:
    worst = {}
    for version in ("v1_draft", "v2"):
        _, *rows = table(drive / f"Finance/Utilisation/utilisation_2025-Q4_{version}.pdf")
        worst[version] = min(rows, key=lambda row: float(row[3]))[0]
    worst["v3_final"] = utilisation.furthest_below()
    assert worst == {"v1_draft": "Organisation", "v2": "Organisation", "v3_final": "Strategy"}


def test_the_values_of_a_form_are_in_its_fields_alone(drive: Path) -> None:
    for number, (practice, worked, status) in utilisation.TRAINING.items():
        path = drive / f"People/Training/{number}.pdf"
        assert status not in text(path)
        with pdfplumber.open(path) as pdf:
            fields = [
                resolve(field) for field in resolve(resolve(pdf.doc.catalog["AcroForm"])["Fields"])
            ]
            found = {decode_text(field["T"]): decode_text(field["V"]) for field in fields}
        assert found["practice"] == practice
        assert found["total_hours"] == str(worked)
        assert found["status"] == status


def test_the_scan_is_one_picture_of_what_the_minutes_say(drive: Path) -> None:
    with pdfplumber.open(drive / "Board/resolution_2025-09-16_signed.pdf") as pdf:
        (page,) = pdf.pages
        assert page.chars == []
        (picture,) = page.images
        assert picture["width"] == pytest.approx(float(page.width))
    assert "Organisation is changed from 60.0 % to 57.0 %" in text(
        drive / "Board/minutes_2025-09-16.pdf"
    )


@pytest.mark.parametrize("name", ["FP-11_utilisation", "FP-14_credit_notes"])
def test_a_memo_has_two_columns_of_prose(drive: Path, name: str) -> None:
    with pdfplumber.open(drive / f"Policies/{name}.pdf") as pdf:
        (page,) = pdf.pages
        below = [word for word in page.extract_words() if word["top"] > 130]
        middle = page.width / 2
    assert not [word for word in below if word["x0"] < middle < word["x1"]]
    left = [word for word in below if word["x1"] <= middle]
    assert min(len(left), len(below) - len(left)) > 50


def test_the_accounts_add_up_to_the_engagements(drive: Path) -> None:
    _, *rows = table(drive / "Finance/management_accounts_2025.pdf")
    shown = {label: [int(amount(cell)) for cell in cells] for label, *cells in rows}
    codes = engagements.ENGAGEMENTS
    assert shown["Fees earned"][-1] == round(sum(map(fees.year_fee, codes)))
    assert shown["Staff cost of engagements"][-1] == sum(map(fees.year_cost, codes))


def test_the_debtors_are_the_invoices_that_are_open(drive: Path) -> None:
    found = text(drive / "Finance/aged_debtors_2025-12.pdf")
    unpaid = {invoice.number for invoice in invoices.INVOICES if invoice.is_open}
    assert set(re.findall(r"INV-2025-\d+", found)) == unpaid
    total = sum(invoice.gross for invoice in invoices.INVOICES if invoice.is_open)
    assert f"All {total:,.2f}" in found


def test_the_status_report_is_wrong_by_the_variation_letter(drive: Path) -> None:
    _, *rows = table(folder(drive, "HP-2504") / "status_report_2025-12.pdf")
    shown = {label: amount(cell) for label, cell in rows}
    assert shown["Fees"] == round(decoys.merrowfield_fees())
    assert shown["Staff cost"] == fees.year_cost("HP-2504")
    assert shown["Margin, %"] == Decimal("55.2")
    right = fees.year_fee("HP-2504")
    assert f"{100 * (right - shown['Staff cost']) / right:.1f}" == "52.9"


def test_the_first_review_blames_an_invoice_that_is_right(drive: Path) -> None:
    found = text(drive / "Finance/Invoices/invoice_review_first_pass.pdf")
    assert "INV-2025-128 (July) is too high" in found
    assert "credit note of 4,232.00 pounds" in found


def test_no_clock_is_left_in_a_pdf(drive: Path) -> None:
    for path in drive.rglob("*.pdf"):
        with pdfplumber.open(path) as pdf:
            assert pdf.metadata["CreationDate"].startswith("D:2000"), path
