# SPDX-License-Identifier: Apache-2.0
"""Fill the forecast from the extension letter, the rate card of 2026 and the last word by mail."""

import email
import mailbox
import os
import re
from email.policy import default
from pathlib import Path

import openpyxl
import pdfplumber

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
WORKBOOK = FILES / "Finance/forecast_2026.xlsx"
CODE = "HP-2505"


def table(path: Path) -> dict[str, list[str]]:
    """The rows of the first table of a PDF file, by their first cell."""
    with pdfplumber.open(path) as pdf:
        _, *rows = pdf.pages[0].extract_table()
    return {row[0]: row[1:] for row in rows}


def discount() -> float:
    """What the engagement's manager wrote last about the discount of 2026."""
    said: list[tuple[object, float]] = []
    for path in (FILES / "Correspondence").glob("*.mbox"):
        box = mailbox.mbox(path, create=False)
        for key in box.keys():  # noqa: SIM118
            mail = email.message_from_bytes(box.get_bytes(key), policy=default)
            text = mail.get_body(["plain", "html"]).get_content()
            percent = re.search(r"([\d.]+) %", text)
            if f"{CODE}: discount for 2026" in mail["Subject"] and percent:
                said.append((mail["Date"].datetime, float(percent[1]) / 100))
    return max(said)[1]


def main() -> None:
    """Type the inputs over, link the summary, save in place."""
    (folder,) = (FILES / "Engagements").glob(f"{CODE}_*")
    hours = table(folder / "extension_letter.pdf")
    rates = table(FILES / "Rates/rate_card_2026-A.pdf")
    book = openpyxl.load_workbook(WORKBOOK)
    assumptions, lindale, summary = (book[name] for name in ("Assumptions", "Lindale", "Summary"))
    assumptions["B4"] = discount()
    for row in range(5, 10):
        assumptions[f"B{row}"] = int(rates[assumptions[f"A{row}"].value.removeprefix("Rate ")][0])
    for row in range(4, 8):
        for letter, worked in zip("CDEF", hours[lindale[f"A{row}"].value], strict=True):
            lindale[f"{letter}{row}"] = int(worked)
    for letter, source in zip("BCDE", "CDEF", strict=True):
        summary[f"{letter}4"] = f"=Lindale!{source}11"
    book.save(WORKBOOK)


if __name__ == "__main__":
    main()
