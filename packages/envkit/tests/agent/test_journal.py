# SPDX-License-Identifier: Apache-2.0
"""A journal is read as far as it was written, wherever it was cut off, and never beyond."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.journal import Journal, Past, read_journal
from envkit.agent.stream import digest
from envkit.agent.types import CallRequest, Sampled
from envkit.trajectory.errors import Damaged
from envkit.trajectory.types import Sampling

PROMPT = [1, 2, 3]


def sampled(count: int, start: int, *, top: bool = False) -> Sampled:
    rng = np.random.default_rng(start)
    return Sampled(
        token_ids=rng.integers(0, 2**31 - 1, count).astype(np.int32),
        logprobs=-rng.random(count).astype(np.float32),
        weight_version=np.sort(rng.integers(0, 3, count)).astype(np.int32),
        finish="stop",
        prompt_tokens=start,
        queued_s=0.1,
        first_token_s=0.25,
        seconds=1.0 / 3.0,
        kv_version=4,
        tries=2,
        topk_ids=rng.integers(0, 9, (count, 2)).astype(np.int32) if top else None,
        topk_logprobs=-rng.random((count, 2)).astype(np.float32) if top else None,
    )


def write(path: Path, turns: int, *, calls: int = 1, over: bool = True, top: bool = False) -> None:
    """Of turns that have so many calls each; the last one's came back where it is ``over``."""
    journal = Journal.create(path)
    journal.begun(PROMPT, Sampling(temperature=0.7))
    for turn in range(turns):
        journal.sampled(turn, sampled(5 + turn, 10 * (turn + 1), top=top))
        for number in range(calls):
            call = CallRequest(name="look", arguments={"at": turn}, call_id=f"call-{turn}-{number}")
            journal.intends(turn, call)
        if over or turn < turns - 1:
            journal.observed(turn, f"{turn:064d}")
    journal.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("journal") / "whole"
    write(path, 3)
    return path.read_bytes()


def read(data: bytes) -> Past:
    with TemporaryDirectory() as home:
        path = Path(home, "journal")
        path.write_bytes(data)
        return read_journal(path)


def shape(past: Past) -> list[tuple[int, int, str]]:
    return [(len(t.sampled.token_ids), len(t.intended), t.observed) for t in past.turns]


@pytest.mark.parametrize("top", [False, True])
def test_what_was_sampled_is_read_as_it_was(tmp_path: Path, top: bool) -> None:
    write(tmp_path / "j", 2, top=top)
    past = read_journal(tmp_path / "j")
    assert past.prompt == digest(PROMPT)
    assert past.sampling["temperature"] == 0.7
    assert past.tokens == 20 + 6
    for turn, each in enumerate(past.turns):
        expected = sampled(5 + turn, 10 * (turn + 1), top=top)
        for name in Sampled.__slots__:
            before, after = getattr(expected, name), getattr(each.sampled, name)
            assert np.array_equal(before, after), name
            assert getattr(before, "dtype", None) == getattr(after, "dtype", None), name
        assert each.intended == [f"call-{turn}-0"]
        assert each.observed == f"{turn:064d}"


@given(st.data())
def test_a_journal_that_was_cut_off_anywhere_is_what_came_before(
    written: bytes, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(written)))
    whole, part = shape(read(written)), shape(read(written[:cut]))
    assert len(part) <= len(whole)
    assert part[:-1] == whole[: max(0, len(part) - 1)]
    for (count, calls, observed), of in zip(part[-1:], whole[len(part) - 1 :], strict=False):
        assert count == of[0]
        assert calls <= of[1]
        assert observed in ("", of[2])


@given(st.data())
def test_a_byte_that_is_not_the_one_that_was_written_is_never_read(
    written: bytes, data: st.DataObject
) -> None:
    where = data.draw(st.integers(0, len(written) - 1))
    flipped = bytearray(written)
    flipped[where] ^= data.draw(st.integers(1, 255))
    whole = shape(read(written))
    try:
        past = shape(read(bytes(flipped)))
    except Damaged:
        return
    last = [*whole[:-1], (*whole[-1][:2], "")]  # in the last record it looks like a cut
    assert past == last


def test_room_that_the_disk_had_given_and_nothing_was_written_to_is_no_damage(
    written: bytes,
) -> None:
    assert shape(read(written + bytes(4096))) == shape(read(written))
    with pytest.raises(Damaged):
        read(written + b"x" * 4096)


def test_a_call_that_was_begun_and_has_no_result_leaves_nobody_knowing(tmp_path: Path) -> None:
    write(tmp_path / "over", 2)
    assert read_journal(tmp_path / "over").unknown == ""
    write(tmp_path / "during", 2, over=False)
    assert "nobody knows what call-1-0 came to" in read_journal(tmp_path / "during").unknown
    write(tmp_path / "before", 2, over=False, calls=0)
    assert read_journal(tmp_path / "before").unknown == ""


def test_records_in_an_order_that_no_episode_has_are_damage(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "j")
    journal.begun(PROMPT, Sampling())
    journal.observed(0, "0" * 64)
    journal.close()
    with pytest.raises(Damaged, match="means nothing"):
        read_journal(tmp_path / "j")


def test_no_journal_is_written_over(tmp_path: Path) -> None:
    write(tmp_path / "j", 1)
    with pytest.raises(FileExistsError):
        Journal.create(tmp_path / "j")


@given(st.binary(max_size=80))
def test_what_is_no_journal_is_damaged_or_empty(data: bytes) -> None:
    with suppress(Damaged):
        assert read(data).turns == ()
