# SPDX-License-Identifier: Apache-2.0
"""Demonstrations with mistakes in them, for a policy that is to be trained further by its rewards.

Transcripts of one shape (the same calls, answers of as many words) lend each other values: with
the share that is asked for, an argument of a call or a word of an answer is another one's, and a
call is left out. Whoever learns from them knows the form, and does what is right often enough for a
reward to tell it apart.

Contract: what is read is what the calls that are said would have read. A value that stands in no
instruction but in a result follows the result, also where that is another one's, and is any where
the call that reads it is left out. Each call is a turn of its own, since it may rest on the one
before.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from envkit.agent.types import CallRequest
from rltrain.tiny.transcripts import Transcript, Turn

_WORD = re.compile(r"\w+")
_PARTS = re.compile(r"\w+|\W+")

type Slot = tuple[int, str]
"""Number of a turn and name of an argument; after the turns, the answer and number of a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demonstration:
    """A transcript by its values."""

    transcript: Transcript
    values: Mapping[Slot, str]

    @property
    def shape(self) -> tuple[object, ...]:
        """Of all that may lend it a value."""
        names = tuple(turn.calls[0].name for turn in self.transcript.turns)
        return (names, tuple(self.values))


@dataclass(slots=True, kw_only=True)
class _Saying:
    """As much of a drawn transcript as there is."""

    group: _Group
    own: int
    """Which of its group it is."""
    share: float
    rng: random.Random
    turns: list[Turn] = field(default_factory=list[Turn])
    read: list[int | None] = field(default_factory=list[int | None])
    """Of every turn: which of its group would have read what it read; None where it is left out."""

    def errs(self) -> bool:
        """Whether this is one of the mistakes."""
        return self.rng.random() < self.share

    def lender(self, slot: Slot) -> int:
        """Whose value is said: of what was read, or its own, or by mistake another one's."""
        turn = self.group.read_in(self.own, slot)
        right = self.own if turn is None else self.read[turn]
        if right is None:
            return self.rng.randrange(len(self.group))
        others = self.group.others(right, slot)
        return self.rng.choice(others) if others and self.errs() else right


class Mistaken:
    """Draws transcripts with mistakes."""

    def __init__(self, transcripts: Sequence[Transcript]) -> None:
        self._results = dict(_results(transcripts))
        groups: dict[tuple[object, ...], list[_Demonstration]] = defaultdict(list)
        for each in map(_demonstration, transcripts):
            groups[each.shape].append(each)
        self._groups = [_Group(each) for each in groups.values()]

    def draw(self, size: int, share: float, rng: random.Random) -> list[Transcript]:
        """``size`` of all transcripts, each at most once as long as there are enough.

        ``share`` of their calls are left out, and of their values wrong where there is another one.
        """
        every = [(group, own) for group in self._groups for own in range(len(group))]
        drawn = rng.sample(every * -(-size // len(every)), size)
        return [
            self._drawn(_Saying(group=group, own=own, share=share, rng=rng)) for group, own in drawn
        ]

    def _drawn(self, saying: _Saying) -> Transcript:
        group, own = saying.group, saying.own
        transcript = group[own].transcript
        for number, turn in enumerate(transcript.turns):
            self._say(number, turn, saying)
        slots = [slot for slot in group[own].values if slot[0] == len(transcript.turns)]
        answer = "".join(group[saying.lender(slot)].values[slot] for slot in slots)
        return replace(transcript, turns=tuple(saying.turns), answer=answer)

    def _say(self, number: int, turn: Turn, saying: _Saying) -> None:
        if saying.errs():
            saying.read.append(None)
            return
        call, result = turn.calls[0], turn.results[0]
        arguments: dict[str, Any] = dict(call.arguments)
        lenders = {name: saying.lender((number, str(name))) for name in arguments}
        for name, lender in lenders.items():
            lent = saying.group[lender].transcript.turns[number].calls[0].arguments[name]
            result = result.replace(str(arguments[name]), str(lent))
            arguments[name] = lent
        asked = replace(call, arguments=arguments)
        saying.turns.append(Turn(calls=(asked,), results=(self._results.get(_key(asked), result),)))
        same = {*lenders.values()}
        saying.read.append(same.pop() if len(same) == 1 else saying.own)


class _Group:
    """Demonstrations of one shape."""

    def __init__(self, members: Sequence[_Demonstration]) -> None:
        self._members = members
        self._others: dict[tuple[int, Slot], list[int]] = {}
        self._read_in: dict[tuple[int, Slot], int | None] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, number: int) -> _Demonstration:
        return self._members[number]

    def others(self, number: int, slot: Slot) -> list[int]:
        """Those that have another value there."""
        if (number, slot) not in self._others:
            value = self[number].values[slot]
            found = [i for i, each in enumerate(self._members) if each.values[slot] != value]
            self._others[number, slot] = found
        return self._others[number, slot]

    def read_in(self, number: int, slot: Slot) -> int | None:
        """The last turn before it whose result has what is its own in the value, if any."""
        if (number, slot) not in self._read_in:
            self._read_in[number, slot] = self._find(number, slot)
        return self._read_in[number, slot]

    def _find(self, number: int, slot: Slot) -> int | None:
        transcript = self[number].transcript
        told = _words(transcript.instruction)
        own = _words(self[number].values[slot]) - self._shared(slot)
        if not own - told:
            return None
        before = enumerate(transcript.turns[: slot[0]])
        return max((at for at, turn in before if own <= _words(turn.results[0])), default=None)

    def _shared(self, slot: Slot) -> set[str]:
        return set[str].intersection(*(_words(each.values[slot]) for each in self._members))


def _demonstration(transcript: Transcript) -> _Demonstration:
    turns = tuple(_one_by_one(transcript))
    values = {
        (number, str(name)): str(value)
        for number, turn in enumerate(turns)
        for name, value in turn.calls[0].arguments.items()
    }
    parts = enumerate(_PARTS.findall(transcript.answer))
    values |= {(len(turns), str(number)): part for number, part in parts}
    return _Demonstration(transcript=replace(transcript, turns=turns), values=values)


def _one_by_one(transcript: Transcript) -> Iterator[Turn]:
    for turn in transcript.turns:
        for call, result in zip(turn.calls, turn.results, strict=True):
            yield Turn(calls=(call,), results=(result,))


def _results(transcripts: Sequence[Transcript]) -> Iterator[tuple[str, str]]:
    for transcript in transcripts:
        for turn in _one_by_one(transcript):
            yield _key(turn.calls[0]), turn.results[0]


def _key(call: CallRequest) -> str:
    return f"{call.name} {sorted(call.arguments.items())!r}"


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))
