# SPDX-License-Identifier: Apache-2.0
"""Mistakes are as many as asked for, and what is read is what the calls that are said read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from envkit.agent.types import CallRequest
from rltrain.tiny.mistakes import Mistaken
from rltrain.tiny.transcripts import Transcript, Turn, read_transcripts

from .recordings import write_recordings

DRAWS = 2000


def call(name: str, **arguments: str) -> CallRequest:
    return CallRequest(name=name, arguments=arguments)


def told(card: str) -> str:
    """What a card says."""
    number = "abcd".index(card)
    return f"Word: {('amber', 'birch', 'cobalt', 'dune')[number]}\nNext: {'bcda'[number]}\n"


def following(card: str) -> Transcript:
    """Reads a card and the one that it names, copies that one, and says its word."""
    named = told(card)[-2]
    shelf = "klmn"["abcd".index(card)]
    return Transcript(
        instruction=f"Read card {card} and the next. Copy that to shelf {shelf}.",
        tools=(),
        turns=(
            Turn(calls=(call("read", path=f"/{card}"),), results=(told(card),)),
            Turn(calls=(call("read", path=f"/{named}"),), results=(told(named),)),
            Turn(
                calls=(call("copy", source=f"/{named}", target=f"/shelf/{shelf}"),),
                results=(f"Copied /{named} to /shelf/{shelf}.",),
            ),
        ),
        answer=f"It is {told(named).split()[1]}.",
    )


@pytest.fixture
def recorded() -> tuple[Transcript, ...]:
    return tuple(following(card) for card in "abcd")


def drawn(
    recorded: tuple[Transcript, ...], share: float
) -> Iterator[tuple[Transcript, Transcript]]:
    """What was recorded, and the same as it is demonstrated."""
    mistaken, rng = Mistaken(recorded), random.Random(0)
    by_instruction = {each.instruction: each for each in recorded}
    for _ in range(DRAWS // len(recorded)):
        for each in mistaken.draw(len(recorded), share, rng):
            yield by_instruction[each.instruction], each


def said_of(transcript: Transcript) -> dict[str, str]:
    """Values by what they are for, of one of which no call is left out; of others, some."""
    asked = [turn.calls[0] for turn in transcript.turns]
    read = [each.arguments["path"] for each in asked if each.name == "read"]
    found: dict[str, str] = dict(zip(("first", "second"), read, strict=False))
    for each in asked:
        if each.name == "copy":
            found |= {"copied": each.arguments["source"], "shelf": each.arguments["target"]}
    return {**found, "word": transcript.answer.split()[2][:-1]}


def test_without_mistakes_it_is_what_was_recorded(recorded: tuple[Transcript, ...]) -> None:
    assert all(right == said for right, said in drawn(recorded, 0.0))


def test_each_draw_has_every_transcript_once(recorded: tuple[Transcript, ...]) -> None:
    said = Mistaken(recorded).draw(4, 0.5, random.Random(0))
    assert {each.instruction for each in said} == {each.instruction for each in recorded}


def whole(pairs: Iterator[tuple[Transcript, Transcript]]) -> Iterator[tuple[dict[str, str], ...]]:
    """Values of those of which no call is left out."""
    for right, said in pairs:
        if len(said.turns) == len(right.turns):
            yield said_of(right), said_of(said)


def test_the_share_that_is_asked_for_is_wrong(recorded: tuple[Transcript, ...]) -> None:
    pairs = [*whole(drawn(recorded, 0.3))]
    for name in ("first", "shelf"):
        wrong = sum(right[name] != said[name] for right, said in pairs)
        assert wrong / len(pairs) == pytest.approx(0.3, abs=0.06), name


def test_the_share_that_is_asked_for_is_left_out(recorded: tuple[Transcript, ...]) -> None:
    calls = sum(len(said.turns) for _, said in drawn(recorded, 0.3))
    assert calls / (3 * DRAWS) == pytest.approx(0.7, abs=0.03)


def test_every_result_is_that_of_the_call_that_was_said(recorded: tuple[Transcript, ...]) -> None:
    for _, said in drawn(recorded, 0.6):
        for turn in said.turns:
            asked = turn.calls[0].arguments
            if turn.calls[0].name == "read":
                assert turn.results[0] == told(asked["path"][1:])
            else:
                assert turn.results[0] == f"Copied {asked['source']} to {asked['target']}."


def test_what_was_read_is_followed_where_it_is_another_one(
    recorded: tuple[Transcript, ...],
) -> None:
    astray = [
        (right, said)
        for right, said in whole(drawn(recorded, 0.3))
        if said["first"] != right["first"]
    ]
    assert len(astray) > DRAWS / 20
    named = [f"/{told(said['first'][1:])[-2]}" for _, said in astray]
    followed = {
        "second": sum(
            said["second"] == name for (_, said), name in zip(astray, named, strict=True)
        ),
        "copied": sum(
            said["copied"] == name for (_, said), name in zip(astray, named, strict=True)
        ),
        "word": sum(said["word"] in told(said["second"][1:]) for _, said in astray),
        "shelf": sum(said["shelf"] == right["shelf"] for right, said in astray),
    }
    for name, often in followed.items():
        assert often / len(astray) == pytest.approx(0.7, abs=0.12), name


def test_what_was_not_read_is_guessed(recorded: tuple[Transcript, ...]) -> None:
    blind = [
        said_of(right)["word"] == said_of(said)["word"]
        for right, said in drawn(recorded, 0.4)
        if [turn.calls[0].name for turn in said.turns] in ([], ["copy"])
    ]
    assert len(blind) > DRAWS / 20
    assert sum(blind) / len(blind) == pytest.approx(0.25, abs=0.08)


def test_what_all_answers_say_alike_is_never_wrong(recorded: tuple[Transcript, ...]) -> None:
    assert {said.answer[:6] for _, said in drawn(recorded, 1.0)} == {"It is "}


def test_transcripts_of_another_shape_lend_nothing(recorded: tuple[Transcript, ...]) -> None:
    first, *others = recorded
    alone = (
        first,
        *(Transcript(instruction=o.instruction, tools=(), turns=(), answer="no") for o in others),
    )
    mistaken, rng = Mistaken(alone), random.Random(0)
    every = [each for _ in range(50) for each in mistaken.draw(4, 0.5, rng)]
    said = [each for each in every if each.instruction == first.instruction]
    assert {each.answer for each in said} == {first.answer}
    assert all(turn in first.turns for each in said for turn in each.turns)


def test_calls_that_were_asked_for_at_once_are_turns_of_their_own(tmp_path: Path) -> None:
    recorded = read_transcripts(write_recordings(tmp_path))
    (said, *_) = Mistaken(recorded).draw(2, 0.0, random.Random(0))
    names = [[call.name for call in turn.calls] for turn in said.turns]
    assert names == [["list_files"], ["read_file"], ["read_file"]]


def test_a_card_task_is_demonstrated_as_its_world_would_answer(tmp_path: Path) -> None:
    from .card_tasks import TINY, transcripts

    cards = TINY / "worlds/card-index/filesystem"
    for _, said in drawn(transcripts(tmp_path), 0.5):
        for turn in said.turns:
            asked = turn.calls[0].arguments
            if "file_path" in asked:
                file = cards / asked["file_path"][1:]
                assert turn.results[0] == file.read_text("utf-8")
