# SPDX-License-Identifier: Apache-2.0
"""Transcripts as ids, as the agent loop would have seen them: prompt, turns, observations.

The ids come from envkit's own template, so a prompt in training is the prompt of a trial. Loss is
taken on what the model says, stop tokens included. Now and then one token of a turn is said as
the two it was merged from: engines sample such tokens, and what reads them must not mind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.agent.parse.format import say
from envkit.agent.prompt import opening
from envkit.agent.tokens import ChatTemplate
from envkit.agent.types import Message
from rltrain.tiny.transcripts import Transcript, Turn

SPLIT_SHARE = 0.1
"""Of turns in which one token is said as two."""
NEXT = Message(role="user", content="")
NONE = -1
"""No token: a turn in which nothing is said ends with its stop token all the same."""
"""What follows a final answer, where a stop token is known by what it begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One transcript as the model sees it."""

    ids: tuple[int, ...]
    said: tuple[bool, ...]
    """Of every id: the model says it."""


class Renderer:
    """Makes examples with one template."""

    def __init__(self, template: ChatTemplate, halves: Mapping[int, tuple[int, int]]) -> None:
        """``halves`` has what tokens were merged from."""
        self.template = template
        self._halves = halves

    def example(self, transcript: Transcript, answer: str, rng: random.Random) -> Example:
        """A transcript that ends with ``answer``, whatever its own is."""
        ids = self._prompt(transcript)
        said = [False] * len(ids)
        for turn, asked in enumerate(transcript.turns):
            self._add(ids, said, self._turn(asked, turn), rng)
        text = say(self.template.parser_name, content=answer)
        self._add(ids, said, (*self._stopped(text, (NEXT,)), []), rng)
        return Example(ids=tuple(ids), said=tuple(said))

    def texts(self, transcript: Transcript) -> Iterator[str]:
        """What the model will see of it, as text."""
        example = self.example(transcript, transcript.answer, random.Random(0))
        yield self.template.decode(example.ids)

    def prompt_tokens(self, transcript: Transcript) -> int:
        """Ids before the model first says something."""
        return len(self._prompt(transcript))

    def _prompt(self, transcript: Transcript) -> list[int]:
        return self.template.prompt(opening(transcript.instruction), transcript.tools)

    def _turn(self, turn: Turn, number: int) -> tuple[list[int], int, list[int]]:
        results = [
            Message(role="tool", content=text, call_id=f"call-{number}-{at}", name=call.name)
            for at, (call, text) in enumerate(zip(turn.calls, turn.results, strict=True), 1)
        ]
        spoken, stop = self._stopped(say(self.template.parser_name, turn.calls), results)
        return spoken, stop, self.template.observations(results, after=stop)

    def _stopped(self, text: str, follows: Sequence[Message]) -> tuple[list[int], int]:
        """A turn, and its stop token: the template's, or the one that what follows begins with."""
        ids = self.template.speak(text)
        stop = self.template.end_of_turn(ids[-1] if ids else NONE)
        return ids, (stop or self.template.observations(follows, after=None))[0]

    def _add(
        self,
        ids: list[int],
        said: list[bool],
        turn: tuple[list[int], int, list[int]],
        rng: random.Random,
    ) -> None:
        spoken, stop, answers = turn
        spoken = [*self._split(spoken, rng), stop]
        ids += [*spoken, *answers]
        said += [True] * len(spoken) + [False] * len(answers)

    def _split(self, spoken: Sequence[int], rng: random.Random) -> list[int]:
        """The first token that was merged latest, taken apart now and then."""
        if rng.random() >= SPLIT_SHARE or not self._halves.keys() & {*spoken}:
            return [*spoken]
        at = max(range(len(spoken)), key=lambda i: spoken[i] if spoken[i] in self._halves else -1)
        return [*spoken[:at], *self._halves[spoken[at]], *spoken[at + 1 :]]


def halves_of(tokenizer: Path) -> dict[int, tuple[int, int]]:
    """What each token of a ``tokenizer.json`` was merged from."""
    model = json.loads(tokenizer.read_text("utf-8"))["model"]
    vocabulary: dict[str, int] = model["vocab"]
    return {
        vocabulary[left + right]: (vocabulary[left], vocabulary[right])
        for left, right in model["merges"]
    }
