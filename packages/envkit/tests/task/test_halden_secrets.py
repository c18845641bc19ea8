# SPDX-License-Identifier: Apache-2.0
"""No document of `halden-pryce` states what a task asks for; it has to be worked out."""

import mailbox
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("reportlab", reason="not run: office libraries absent")
pytest.importorskip("pptx", reason="not run: office libraries absent")

import pdfplumber

ANSWERS = {
    "merrowfield-margin": r"940[,.]?9(?:53|41)|\b52\.9\b|0\.529",
    "tarnbrook-overcharge": r"2[,.]?447\.2|14 (?:consultant )?hours",
    "utilisation-gap": r"\b69\.4|0\.6943|-2\.6\b|-2\.56",
}


def words(path: Path) -> str:
    """What a reader finds in the file, values of formulas included."""
    if path.suffix == ".pdf":
        with pdfplumber.open(path) as pdf:
            return " ".join(page.extract_text() or "" for page in pdf.pages)
    if path.suffix in {".xlsx", ".pptx"}:
        with zipfile.ZipFile(path) as archive:
            parts = [archive.read(name) for name in archive.namelist() if name.endswith(".xml")]
        return re.sub("<[^>]*>", " ", b" ".join(parts).decode())
    if path.suffix == ".mbox":
        return " ".join(_bodies(path))
    return path.read_text(encoding="utf-8")


def _bodies(path: Path) -> Iterator[str]:
    box = mailbox.mbox(path, create=False)
    try:
        for message in box:
            for part in message.walk():
                if part.get_content_maintype() == "text":
                    yield part.get_payload(decode=True).decode()
    finally:
        box.close()


@pytest.fixture(scope="module")
def texts(made: Callable[[str], Path]) -> dict[str, str]:
    drive = made("utilisation-gap") / "filesystem"
    files = [path for path in drive.rglob("*") if path.is_file()]
    return {path.relative_to(drive).as_posix(): words(path) for path in files}


@pytest.mark.integration
@pytest.mark.parametrize("task", ANSWERS)
def test_no_document_states_the_answer(texts: dict[str, str], task: str) -> None:
    assert [name for name, text in texts.items() if re.search(ANSWERS[task], text, re.I)] == []


@pytest.mark.integration
def test_what_contradicts_is_found_by_the_same_reading(texts: dict[str, str]) -> None:
    def states(pattern: str) -> set[str]:
        return {name for name, text in texts.items() if re.search(pattern, text)}

    assert len(states(r"988,242|55\.2 %")) >= 2
    assert len(states(r"4,232\.00")) >= 2
    assert {"Board/kpi_dashboard.xlsx", "Board/board_pack_2026-01.pptx"} <= states(r"0\.682|68\.2")
