# SPDX-License-Identifier: Apache-2.0
"""Text that can only be read, and how much of it is shown."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.show.plain import Cut, plain, shorten


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b5A", "\\x9b5A"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("\u202eabc", "\\u202eabc"),
        ("line\u2028line", "line\\u2028line"),
        ("👩\u200d👩 東京", "👩\u200d👩 東京"),
    ],
)
def test_what_would_be_obeyed_is_spelt_out(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text())
def test_nothing_is_left_that_moves_a_cursor_or_reorders(text: str) -> None:
    kept = [char for char in plain(text) if char not in "\n\t\u200c\u200d"]
    assert not {unicodedata.category(char) for char in kept} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(st.sampled_from("ab \n"), max_size=400))
def test_a_shortened_text_begins_and_ends_as_the_whole(text: str) -> None:
    short = shorten(text, Cut(lines=4, characters=60))
    whole = text.strip("\n")
    assert whole.startswith(short.head)
    assert whole.endswith(short.tail)
    assert len(short.head) + len(short.tail) <= len(whole)
    assert bool(short.left_out) == (len(short.head) + len(short.tail) < len(whole))


def test_what_is_left_out_is_counted() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    short = shorten(text, Cut(lines=9, characters=10_000))
    assert short.head == "\n".join(text.split("\n")[:6])
    assert short.tail == "\n".join(text.split("\n")[-3:])
    missing = len(text) - len(short.head) - len(short.tail)
    assert short.left_out == f"91 lines, {missing} characters"


def test_one_endless_line_is_cut_by_characters() -> None:
    short = shorten("x" * 100_000)
    assert len(short.head) + len(short.tail) < 1500
    assert short.left_out.endswith("characters")
