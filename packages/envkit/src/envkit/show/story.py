# SPDX-License-Identifier: Apache-2.0
"""One trajectory as turns: what was said, what came of it, and where tokens and seconds went.

Contract: ids, sizes, times and outcomes are those of the row. Text is made of ids where there is a
tokenizer, and is missing where there is none; nothing else is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from envkit.agent.hear import Ear
from envkit.agent.show import NUDGE
from envkit.show.parts import Call, Story, Told, Turn, Unlikely
from envkit.show.shares import course, seconds, stream, tokens
from envkit.trajectory import text as texts
from envkit.trajectory.types import Episode, Kind, Stream, Trajectory

UNLIKELY: Final = 8
AROUND: Final = 12
"""Tokens shown before an unlikely one; half as many after it."""


def tell(trajectory: Trajectory, ear: Ear | None, notes: Sequence[str] = ()) -> Story:
    """The story of a trajectory; without an ear there is no text in it."""
    episode = trajectory.episode
    decode = ear.decode if ear else _nothing
    hear = ear.hear(episode) if ear else texts.plain_text
    first = next((each for each in episode.stream.segments if each.kind is Kind.PROMPT), None)
    size = first.stop - first.start if first else 0
    ids = episode.stream.token_ids
    return Story(
        trajectory=trajectory,
        has_text=ear is not None,
        prompt=decode(ids[:size].tolist()) if ear and first else None,
        prompt_tokens=size,
        turns=_turns(episode, texts.turns(episode, decode, hear=hear), has_text=ear is not None),
        tokens=tokens(episode),
        seconds=seconds(episode),
        stream=stream(episode),
        course=course(episode),
        unlikely=_unlikely(episode.stream, decode),
        notes=tuple(notes),
    )


def _nothing(_ids: Sequence[int]) -> str:
    return ""


def _turns(episode: Episode, heard: Sequence[texts.Turn], *, has_text: bool) -> tuple[Turn, ...]:
    found: list[Turn] = []
    version: int | None = None
    free_at = 0.0
    for turn, request in zip(heard, episode.requests, strict=True):
        segment = turn.model.segment
        part = slice(segment.start, segment.stop)
        versions = episode.stream.weight_version[part].tolist()
        calls = [each for each in episode.calls if each.turn == segment.turn]
        tool = next((each for each in turn.after if each.segment.kind is Kind.TOOL), None)
        found.append(
            Turn(
                number=segment.turn,
                request=request,
                text=turn.model.text if has_text else None,
                content=turn.said.content if has_text else "",
                thinking=turn.said.thinking,
                calls=tuple(
                    Call(
                        record=each.record,
                        arguments=each.arguments if has_text else None,
                        result=each.result if has_text else None,
                    )
                    for each in turn.calls
                ),
                faults=tuple(f for f in episode.parse_faults if f.turn == segment.turn),
                observed=tool.text if tool and has_text else None,
                observed_tokens=tool.segment.stop - tool.segment.start if tool else 0,
                told=_told(episode, turn),
                waited_s=max(0.0, request.started_s - free_at),
                mean_logprob=float(np.mean(episode.stream.logprobs[part])),
                weights=_weights(versions, version),
            )
        )
        version = versions[-1]
        ends = [each.started_s + each.seconds for each in (request, *calls)]
        free_at = max(ends)
    return tuple(found)


def _weights(versions: Sequence[int], before: int | None) -> tuple[tuple[int, int], ...]:
    changes: list[tuple[int, int]] = []
    for at, version in enumerate(versions):
        if version != before and version != -1:
            changes.append((at, version))
        before = version
    return tuple(changes)


def _told(episode: Episode, turn: texts.Turn) -> tuple[Told, ...]:
    """What the harness said: segments of its own, and what stands behind the observations."""
    number = turn.model.segment.turn
    repair = "\n".join(f.message for f in episode.parse_faults if f.turn == number)
    nudged = episode.used.nudged_at == number
    found: list[Told] = []
    for part in turn.after:
        size = part.segment.stop - part.segment.start
        if part.segment.kind is Kind.HARNESS:
            found.append(_own(part.text, size, repair, nudged))
        elif repair:
            found.append(Told(what="repair", text=repair, tokens=None))
        if part.segment.kind is Kind.TOOL and nudged:
            found.append(Told(what="nudge", text=NUDGE, tokens=None))
    return tuple(found)


_MARKS: Final = re.compile(r"<\|[^|>]{1,40}\|>|</?think>")


def _own(text: str, size: int, repair: str, nudged: bool) -> Told:
    if repair and (not text or repair[:40] in text):
        return Told(what="repair and nudge" if nudged else "repair", text=repair, tokens=size)
    if not _MARKS.sub("", text).strip():
        return Told(what="stop token", text=text, tokens=size)
    return Told(what="nudge" if nudged else "message", text=text, tokens=size)


def _unlikely(stream: Stream, decode: texts.Decode) -> tuple[Unlikely, ...]:
    sampled = np.flatnonzero(stream.loss_mask)
    order = sampled[np.argsort(stream.logprobs[sampled], kind="stable")][:UNLIKELY]
    return tuple(_at(stream, int(place), decode) for place in order)


def _at(stream: Stream, place: int, decode: texts.Decode) -> Unlikely:
    ids = stream.token_ids
    segment = next(each for each in stream.segments if each.start <= place < each.stop)
    first = max(segment.start, place - AROUND)
    last = min(segment.stop, place + 1 + AROUND // 2)
    return Unlikely(
        turn=segment.turn,
        position=place,
        logprob=float(stream.logprobs[place]),
        before=decode(ids[first:place].tolist()),
        token=decode(ids[place : place + 1].tolist()) or str(int(ids[place])),
        after=decode(ids[place + 1 : last].tolist()),
    )
