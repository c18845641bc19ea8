# SPDX-License-Identifier: Apache-2.0
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.audit.fingerprint import LIMIT, fingerprint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python: not found", "python: not found"),
        (
            "ModuleNotFoundError: No module named 'pandas'",
            "ModuleNotFoundError: No module named pandas",
        ),
        ("Required: file_path, tab_index", "Required: file_path, tab_index"),
        ("row 12 of 3,400 is 7.5% off", "row # of # is #% off"),
        ("Tool 'a b' already there", "Tool '*' already there"),
        ("doesn't end, isn't quoted", "doesn't end, isn't quoted"),
        ("File not found: /1. Model/My File v2.xlsx", "File not found: <path>"),
        ("cannot open /tmp/x.txt for writing", "cannot open <path> for writing"),
        ("cannot open C:\\data\\x.txt", "cannot open <path>"),
        ("and/or", "and/or"),
        ("GET https://example.org/a?b=1 failed", "GET <url> failed"),
        ("id 0f9e8d7c6b5a4f3e and 6fa459ea-ee8a-3ca4-894e-db77e160355e", "id <id> and <id>"),
        ("operations.0: bad; operations.1: bad; operations.12: bad", "operations.#: bad"),
        ("Internal: operations.0: bad; operations.1: bad", "Internal: operations.#: bad"),
        ("1 validation error for X", "# validation errors for X"),
        (
            "2 validation errors for X\n0.a\n  Field required\n1.a\n  Field required",
            "# validation errors for X; #.a; Field required",
        ),
    ],
)
def test_masks_what_varies_and_keeps_what_matters(text: str, expected: str) -> None:
    assert fingerprint(text) == expected


def test_two_missing_modules_are_two_errors() -> None:
    assert fingerprint("No module named 'pandas'") != fingerprint("No module named 'numpy'")


def test_never_holds_a_secret() -> None:
    assert "hunter22" not in fingerprint("login failed: password=hunter22")


@given(st.text(max_size=600))
def test_is_bounded_printable_and_on_one_line(text: str) -> None:
    made = fingerprint(text)
    assert len(made) <= LIMIT
    assert made.isprintable()


words = st.lists(st.sampled_from(["row", "of", "file", "bad:", "value"]), min_size=1, max_size=6)


@given(words, st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_never_matter(parts: list[str], one: int, other: int) -> None:
    made = {fingerprint(" ".join([*parts, str(number), "end"])) for number in (one, other)}
    assert len(made) == 1
    assert not re.search(r"(?<!\w)\d", made.pop())


@given(words, st.from_regex(r"[a-z0-9 _.]{1,30}", fullmatch=True), st.sampled_from("'\"`"))
def test_quotes_never_matter(parts: list[str], quoted: str, mark: str) -> None:
    assert fingerprint(" ".join([*parts, f"{mark}{quoted}{mark}"])).endswith("'*'")


@given(words, st.from_regex(r"(/[a-z0-9_]{1,12}){1,6}\.[a-z]{2,4}", fullmatch=True))
def test_paths_never_matter(parts: list[str], path: str) -> None:
    assert path not in fingerprint(" ".join([*parts, path]))
