# SPDX-License-Identifier: Apache-2.0
"""One trajectory as turns: every token in its place, every second accounted for."""

from dataclasses import replace
from pathlib import Path

import pytest

from envkit.agent.hear import Ear, ear
from envkit.agent.show import NUDGE
from envkit.show.story import tell
from envkit.trajectory.types import Trajectory

from .recorded import SAID_BEFORE


@pytest.fixture
def heard(model: Path) -> Ear:
    return ear(model)


def test_a_turn_is_read_as_its_parser_read_it(rows: dict[str, Trajectory], heard: Ear) -> None:
    story = tell(rows["plain"], heard)
    first = story.turns[0]
    assert first.content == SAID_BEFORE
    assert [call.record.name for call in first.calls] == ["list_files"]
    assert first.calls[0].arguments is not None
    assert first.calls[0].arguments["path"] == "/cards"
    assert first.calls[0].result == "north.txt\nsouth.txt"
    assert story.prompt is not None
    assert "How many pallets" in story.prompt


def test_each_of_several_calls_has_its_own_result(rows: dict[str, Trajectory], heard: Ear) -> None:
    read, look = tell(rows["plain"], heard).turns[2].calls
    assert read.result is not None
    assert read.result.startswith("row 0: ")
    assert look.result == "north.txt\nsouth.txt"


def test_a_turn_that_cannot_be_read_has_its_text_its_fault_and_the_repair(
    rows: dict[str, Trajectory], heard: Ear
) -> None:
    turn = tell(rows["plain"], heard).turns[1]
    assert turn.text is not None
    assert '{"name": "read_file"' in turn.text
    assert [fault.code for fault in turn.faults] == ["unclosed"]
    (told,) = turn.told
    assert told.what == "repair"
    assert told.text == turn.faults[0].message
    assert told.tokens


def test_a_stop_token_that_was_not_sampled_is_the_harness_s(
    rows: dict[str, Trajectory], heard: Ear
) -> None:
    told = tell(rows["cut_off"], heard).turns[0].told
    assert [each.what for each in told] == ["stop token", "repair"]


def test_the_nudge_stands_behind_the_turn_after_which_it_was_given(
    rows: dict[str, Trajectory], heard: Ear
) -> None:
    row = rows["full"]
    nudged = [turn for turn in tell(row, heard).turns if any(t.text == NUDGE for t in turn.told)]
    assert [turn.number for turn in nudged] == [row.episode.used.nudged_at]


@pytest.mark.parametrize("name", ["plain", "hostile", "full", "cut_off"])
def test_the_shares_add_up(rows: dict[str, Trajectory], heard: Ear, name: str) -> None:
    row = rows[name]
    story = tell(row, heard)
    assert sum(each.amount for each in story.tokens) == row.episode.limits.context_tokens
    by_turn = sum(turn.sampled + turn.added for turn in story.turns)
    assert story.prompt_tokens + by_turn == len(row.episode.stream.token_ids)
    ends = max(each.stop for each in story.course)
    assert sum(each.amount for each in story.seconds) == pytest.approx(ends)


def test_weights_are_named_where_they_change(rows: dict[str, Trajectory], heard: Ear) -> None:
    turns = tell(rows["plain"], heard).turns
    assert [version for _, version in turns[0].weights] == [3]
    assert [version for _, version in turns[1].weights] == [4]
    assert turns[1].weights[0][0] > 0, "inside the turn"
    assert [turn.weights for turn in turns[2:]] == [(), ()]


def test_the_least_likely_tokens_come_first(rows: dict[str, Trajectory], heard: Ear) -> None:
    row = rows["plain"]
    story = tell(row, heard)
    lowest = sorted(row.episode.stream.logprobs[row.episode.stream.loss_mask])[:8]
    assert [each.logprob for each in story.unlikely] == pytest.approx(lowest)
    for each in story.unlikely:
        ids = row.episode.stream.token_ids[each.position : each.position + 1]
        assert each.token == heard.decode(ids.tolist())


def test_without_a_tokenizer_sizes_and_times_are_the_same_and_no_text_is_made_up(
    rows: dict[str, Trajectory], heard: Ear
) -> None:
    with_text, without = tell(rows["plain"], heard), tell(rows["plain"], None)
    assert without.prompt is None
    assert not without.has_text
    assert (without.tokens, without.seconds) == (with_text.tokens, with_text.seconds)
    for full, bare in zip(with_text.turns, without.turns, strict=True):
        assert (bare.text, bare.observed, bare.content, bare.thinking) == (None, None, "", "")
        assert [call.result for call in bare.calls] == [None] * len(full.calls)
        assert [call.record for call in bare.calls] == [call.record for call in full.calls]
        assert (bare.sampled, bare.added) == (full.sampled, full.added)


def test_thinking_is_told_apart(rows: dict[str, Trajectory], heard: Ear) -> None:
    row = rows["plain"]
    story = tell(replace(row, episode=replace(row.episode, parse_faults=())), heard)
    assert story.turns[1].thinking == "So be it."
