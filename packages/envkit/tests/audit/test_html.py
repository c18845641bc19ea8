# SPDX-License-Identifier: Apache-2.0
import html.parser
import re
from pathlib import Path

import pytest

from envkit.audit import Report, examine
from envkit.audit.html import page

EVIL = "</td><script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:0'>\x1b[31m"


class Tags(html.parser.HTMLParser):
    """What a browser would make of a page: its tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.fixture
def hostile(traces, say) -> Report:
    """Every place a trace's text can reach, filled with markup."""
    name = EVIL.replace("/", "_")
    refused = (EVIL, {"action": EVIL}, say({"error": f"Required: a\n{EVIL}"}))
    traces.run(f"task {name}"[:200], [refused] * 3, reward=0.0)
    broken = traces.root / name[:200] / "trajectory.json"
    broken.parent.mkdir()
    broken.write_text(EVIL, "utf-8")
    return traces.audit()


def test_markup_of_a_trace_stays_text(hostile: Report) -> None:
    seen = Tags(page(hostile))
    assert not {"script", "img", "a", "iframe", "link", "object"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert "\x1b" not in page(hostile)


def test_the_page_forbids_everything_but_its_own_style(hostile: Report) -> None:
    policy = next(v for _, v in Tags(page(hostile)).attributes if v and "default-src" in v)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_the_page_needs_nothing_from_elsewhere(fixtures: Path) -> None:
    assert not re.search(r"https?://|url\(|@import|src=", page(examine(fixtures)))


def test_the_page_says_what_the_screen_says(fixtures: Path) -> None:
    text = page(examine(fixtures))
    for words in ("13 runs", "python: not found", "polluted-zero", "broken/cut/trajectory.json"):
        assert words in text


def test_an_audit_of_nothing_is_a_page_too(tmp_path: Path) -> None:
    assert "0 runs, n/a with an error" in page(examine(tmp_path))
