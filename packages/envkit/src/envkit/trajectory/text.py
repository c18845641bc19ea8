# SPDX-License-Identifier: Apache-2.0
"""A trajectory as text, turn by turn: for people, viewers and other formats, never for training.

Contract: made from ids by a tokenizer's `Decode`; ids are never made from it. What a turn asked for
is only known where a `Hear` reads the model's text or the texts of calls are given; what neither
says is left empty and not guessed. Ids and outcomes of calls are those of the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from envkit.trajectory.types import CallRecord, Episode, Kind, Segment

type Decode = Callable[[Sequence[int]], str]
"""Text of ids, special tokens spelt out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call as the model's text has it."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a turn's text says."""

    content: str
    thinking: str = ""
    calls: tuple[Asked, ...] = ()


type Hear = Callable[[str], Said]
"""Reads a turn's text, its last special token included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallText:
    """What is known of a call as text, by whoever carried it out."""

    arguments: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSeen:
    """A call of a turn."""

    record: CallRecord
    arguments: Mapping[str, Any] | None
    """None where nothing says what they were."""
    result: str | None
    """None where the model was shown none, or not by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A segment as text."""

    index: int
    """Among the segments of the stream."""
    segment: Segment
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model sampled at once, and what followed it."""

    model: Part
    said: Said
    calls: tuple[CallSeen, ...] = ()
    after: tuple[Part, ...] = field(default=())
    """Observations and what the harness added, in order."""


def plain_text(text: str) -> Said:
    """A turn's text as it is: nothing is read out of it."""
    return Said(content=text)


def parts(episode: Episode, decode: Decode) -> tuple[Part, ...]:
    """Every segment as text."""
    ids = episode.stream.token_ids
    return tuple(
        Part(index=index, segment=each, text=decode(ids[each.start : each.stop].tolist()))
        for index, each in enumerate(episode.stream.segments)
    )


def turns(
    episode: Episode,
    decode: Decode,
    *,
    hear: Hear = plain_text,
    texts: Mapping[str, CallText] | None = None,
) -> tuple[Turn, ...]:
    """The turns of the model, with their calls; ``texts`` by the ids of calls."""
    groups: list[list[Part]] = []
    for part in parts(episode, decode):
        if part.segment.kind is Kind.MODEL:
            groups.append([])
        if groups:
            groups[-1].append(part)
    return tuple(_turn(episode, hear, texts or {}, group) for group in groups)


def _turn(episode: Episode, hear: Hear, texts: Mapping[str, CallText], group: list[Part]) -> Turn:
    model, *after = group
    said = hear(model.text)
    records = [each for each in episode.calls if each.turn == model.segment.turn]
    shown = next((part.text for part in after if part.segment.kind is Kind.TOOL), None)
    results = split_results(shown, len(records))
    asked = list(said.calls)
    calls: list[CallSeen] = []
    for record, result in zip(records, results, strict=True):
        own = next((each for each in asked if each.name == record.name), None)
        if own is not None:
            asked.remove(own)
        known = texts.get(record.call_id)
        arguments = known.arguments if known else own.arguments if own else None
        result = known.result if known else result
        calls.append(CallSeen(record=record, arguments=arguments, result=result))
    return Turn(model=model, said=said, calls=tuple(calls), after=tuple(after))


_RESULTS: Final = (
    re.compile(r"<tool_response>\n?(.*?)\n?</tool_response>", re.DOTALL),
    re.compile(r"<\|start_header_id\|>ipython<\|end_header_id\|>\n\n(.*?)<\|eot_id\|>", re.DOTALL),
)


def split_results(shown: str | None, calls: int) -> list[str | None]:
    """The observations of one turn by call, where the template's marks tell them apart.

    Where they do not, the first call has all of the text and the others have none.
    """
    if shown is None or not calls:
        return [None] * calls
    for pattern in _RESULTS:
        found = pattern.findall(shown)
        if len(found) == calls:
            return list(found)
    return [shown, *([None] * (calls - 1))]
