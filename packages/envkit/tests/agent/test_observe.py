# SPDX-License-Identifier: Apache-2.0
"""Long results: head and tail, a line that says what is missing, and always within the limit."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.observe import LEAST, Result, share

from .small import ByteTemplate

CODEC = ByteTemplate()


class Pairs(ByteTemplate):
    """Two characters a token, so that what is joined is encoded otherwise than its parts."""

    def encode(self, text: str) -> list[int]:
        return [300 + hash(text[at : at + 2]) % 1000 for at in range(0, len(text), 2)]

    def decode(self, ids: Sequence[int]) -> str:
        return "?" * len(ids)


def test_a_result_that_fits_is_shown_as_it_is() -> None:
    assert Result("twelve bytes", CODEC).shown(12).text == "twelve bytes"


def test_two_thirds_of_the_head_and_one_of_the_tail_are_shown() -> None:
    text = "h" * 3000 + "t" * 3000
    shown = Result(text, CODEC).shown(660, "/kept/call-1-1.txt")
    head, line, tail = shown.text.partition("\n[")[0], shown.text, shown.text.rpartition("]\n")[2]
    assert set(head) == {"h"}
    assert set(tail) == {"t"}
    assert len(head) == pytest.approx(2 * len(tail), abs=2)
    assert len(CODEC.encode(shown.text)) <= 660
    assert len(head) + len(tail) + shown.cut_tokens == 6000
    assert (
        f"[{shown.cut_tokens} tokens are left out here; the whole is in /kept/call-1-1.txt]" in line
    )


def test_where_the_whole_lies_nowhere_nothing_is_promised() -> None:
    shown = Result("x" * 1000, CODEC).shown(200)
    assert "the whole is in" not in shown.text
    assert "ask for less at once" in shown.text


@given(st.text(st.sampled_from("aé漢🙂\n "), min_size=1, max_size=400), st.integers(0, 300))
def test_no_character_is_cut_and_the_limit_holds(text: str, limit: int) -> None:
    result = Result(text, CODEC)
    shown = result.shown(limit)
    assert len(CODEC.encode(shown.text)) <= limit
    assert "\ufffd" not in shown.text
    found = re.search(r"\n?\[(\d+) tokens are left out here[^]]*\]\n?", shown.text)
    if found:
        head, tail = shown.text[: found.start()], shown.text[found.end() :]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert int(found[1]) == shown.cut_tokens
    elif shown.cut_tokens:
        assert text.startswith(shown.text)
    assert (shown.cut_tokens > 0) == (len(result) > limit)


@given(st.text(min_size=1, max_size=300), st.integers(0, 100))
def test_the_limit_holds_where_decoding_does_not_give_the_text_back(text: str, limit: int) -> None:
    codec = Pairs()
    shown = Result(text, codec).shown(limit)
    assert len(codec.encode(shown.text)) <= limit


def test_halves_of_characters_are_replaced() -> None:
    assert Result("a\ud800b", CODEC).shown(99).text == "a?b"


def test_too_small_a_limit_shows_at_least_how_much_there_is() -> None:
    shown = Result("y" * 500, CODEC).shown(55 + LEAST - 2)
    assert shown.text == "[500 tokens are left out here; ask for less at once]"
    assert shown.cut_tokens == 500


@pytest.mark.parametrize(
    ("lengths", "each", "most", "limit"),
    [
        ([10, 20], 0, 100, 100),
        ([10, 2000], 50, 1000, 50),
        ([10, 2000], 0, 100, 90),
        ([500, 2000, 10], 0, 110, 50),
        ([500, 500], 0, 0, 0),
        ([500, 500], 0, -5, 0),
        ([], 7, 100, 7),
    ],
)
def test_what_short_results_leave_is_for_the_long_ones(
    lengths: list[int], each: int, most: int, limit: int
) -> None:
    assert share(lengths, each, most) == limit


@given(st.lists(st.integers(0, 5000), max_size=20), st.integers(0, 3000), st.integers(0, 9000))
def test_shares_never_pass_what_there_is(lengths: list[int], each: int, most: int) -> None:
    limit = share(lengths, each, most)
    assert sum(min(length, limit) for length in lengths) <= most
    assert not each or limit <= each
