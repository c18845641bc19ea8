# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.audit.text import EVIDENCE, clean, label, shown, window


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("a\u202eb\u2066c\u200bd\ufeff", "abcd"),
        ("bell\x07 back\x08 del\x7f", "bell back del"),
        ("line\r\nnext\u2028para", "line\nnextpara"),
        ("tab\there", "tab here"),
        ("tag\U000e0041", "tag"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("Ünïcode 日本 ✓ stays", "Ünïcode 日本 ✓ stays"),
    ],
)
def test_control_sequences_are_gone(text: str, expected: str) -> None:
    assert clean(text) == expected


@given(st.text(max_size=400))
def test_cleaned_text_is_printable(text: str) -> None:
    assert clean(text).replace("\n", "").isprintable()


@given(st.text(max_size=1000))
def test_what_is_shown_is_one_short_safe_line(text: str) -> None:
    made = shown(text)
    assert len(made) <= EVIDENCE
    assert made.isprintable()


def test_a_label_keeps_the_spaces_of_a_file_name() -> None:
    assert label("a  b/c .json") == "a  b/c .json"
    assert label("a\nb\x1b[2J") == "a b"


def test_a_window_without_a_break_shows_nothing_rather_than_half_a_word() -> None:
    assert window("x" * 5000) == ""
    assert window("a " + "x" * 5000) == "a"
    assert window(" " + "x" * 5000) == ""
    assert window(" " * 5000).strip() == ""
