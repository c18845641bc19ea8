# SPDX-License-Identifier: Apache-2.0
"""Examples are what the agent loop would have seen, and only what the model says is learned."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from envkit.agent.parse import parser_named
from envkit.agent.tokens import load_template
from rltrain.tiny.examples import SPLIT_SHARE, Example, Renderer, halves_of
from rltrain.tiny.tokenizer import families, family_named, train_tokenizer, write_family
from rltrain.tiny.transcripts import Transcript, read_transcripts

from .recordings import HOSTILE, write_recordings

FAMILIES = sorted(families())


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return read_transcripts(write_recordings(tmp_path / "recorded"))[0]


@pytest.fixture
def renderer(tmp_path: Path) -> Callable[[str], Renderer]:
    def make(name: str) -> Renderer:
        family = family_named(name)
        tokenizer = train_tokenizer([family], ["list_files read_file amber birch card"] * 9)
        write_family(tmp_path / name, family, tokenizer)
        halves = halves_of(tmp_path / name / "tokenizer.json")
        return Renderer(load_template(tmp_path / name), halves)

    return make


def turns_of(example: Example) -> list[list[int]]:
    """What the model says, turn by turn."""
    turns: list[list[int]] = []
    for before, now, token in zip((False, *example.said), example.said, example.ids, strict=False):
        if now and not before:
            turns.append([])
        if now:
            turns[-1].append(token)
    return turns


@pytest.mark.parametrize("name", FAMILIES)
def test_every_turn_reads_back_as_the_recorded_calls(
    name: str, renderer: Callable[[str], Renderer], transcript: Transcript
) -> None:
    by = renderer(name)
    example = by.example(transcript, "birch", random.Random(0))
    *calling, last = turns_of(example)
    parser = parser_named(by.template.parser_name)
    for said, turn in zip(calling, transcript.turns, strict=True):
        assert said[-1] in by.template.stop_ids
        parsed = parser.parse(by.template.decode(said[:-1]), transcript.tools)
        assert [(c.name, dict(c.arguments)) for c in parsed.calls] == [
            (c.name, dict(c.arguments)) for c in turn.calls
        ]
    assert last[-1] in by.template.stop_ids
    assert by.template.decode(last[:-1]) == "birch"


@pytest.mark.parametrize("name", FAMILIES)
def test_the_ids_are_the_templates_own_prompt_and_observations(
    name: str, renderer: Callable[[str], Renderer], transcript: Transcript
) -> None:
    by = renderer(name)
    example = by.example(transcript, "birch", random.Random(0))
    first = example.said.index(True)
    assert by.prompt_tokens(transcript) == first
    heard = by.template.decode(
        [token for token, said in zip(example.ids, example.said, strict=True) if not said][first:]
    )
    assert HOSTILE in heard.replace('\\"', '"')


def test_now_and_then_a_token_is_said_as_the_two_it_was_merged_from(
    renderer: Callable[[str], Renderer], transcript: Transcript
) -> None:
    by = renderer("qwen3")
    rng = random.Random(1)
    said = [turn for _ in range(100) for turn in turns_of(by.example(transcript, "amber", rng))]
    split = [turn for turn in said if by.template.speak(by.template.decode(turn)) != turn]
    assert len(said) == 300
    assert 0.5 * SPLIT_SHARE < len(split) / len(said) < 2 * SPLIT_SHARE
    assert len({by.template.decode(turn) for turn in said}) == 3


@pytest.mark.parametrize("name", FAMILIES)
def test_an_answer_that_says_nothing_is_its_stop_token(
    name: str, renderer: Callable[[str], Renderer], transcript: Transcript
) -> None:
    by = renderer(name)
    (stop,) = turns_of(by.example(transcript, "", random.Random(0)))[-1]
    assert stop in by.template.stop_ids
