# SPDX-License-Identifier: Apache-2.0
"""Requests, calls, budgets: what the loop says agrees with the stream."""

from __future__ import annotations

from collections.abc import Iterator

from envkit.trajectory.digest import ids_digest
from envkit.trajectory.invariants.parts import Problem, amounts, is_unicode, segments_of
from envkit.trajectory.types import Episode, Kind


def requests(episode: Episode) -> Iterator[Problem]:
    """One a model segment, and of its size."""
    models = segments_of(episode.stream, Kind.MODEL)
    if len(models) != len(episode.requests):
        yield "episode.requests", f"are {len(episode.requests)} for {len(models)} model segments"
    for index, (request, segment) in enumerate(zip(episode.requests, models, strict=False)):
        where = f"episode.requests[{index}]"
        for field, expected in {
            "turn": segment.turn,
            "finish": segment.finish,
            "sampled_tokens": segment.stop - segment.start,
            "prompt_tokens": segment.start,
        }.items():
            if getattr(request, field) != expected:
                found = getattr(request, field)
                yield f"{where}.{field}", f"is {found}, the segment says {expected}"
        yield from amounts(where, request, "started_s", "first_token_s", "seconds")
        if request.tries < 1:
            yield f"{where}.tries", f"is {request.tries}"


def calls(episode: Episode) -> Iterator[Problem]:
    """Each of a turn that was sampled, with the digest of what the model was shown."""
    turns = {each.turn for each in segments_of(episode.stream, Kind.MODEL)}
    shown = {
        each.turn: ids_digest(episode.stream.token_ids[each.start : each.stop])
        for each in segments_of(episode.stream, Kind.TOOL)
    }
    names = set[str]()
    for index, call in enumerate(episode.calls):
        where = f"episode.calls[{index}]"
        if not call.call_id or call.call_id in names:
            yield f"{where}.call_id", f"{call.call_id!r} is empty or not the only one"
        names.add(call.call_id)
        if call.turn not in turns:
            yield f"{where}.turn", f"is {call.turn}; the model sampled nothing in it"
        if call.observation_sha256 != shown.get(call.turn, ""):
            yield f"{where}.observation_sha256", "is not of the ids of its turn's observations"
        yield from amounts(where, call, "started_s", "seconds", "cut_tokens")
    for index, fault in enumerate(episode.parse_faults):
        if fault.turn not in turns:
            yield f"episode.parse_faults[{index}].turn", f"is {fault.turn}; nothing was sampled"


def budgets(episode: Episode) -> Iterator[Problem]:
    """Amounts that can be, and texts that a file can hold."""
    used, sampled = episode.used, int(episode.stream.loss_mask.sum())
    if used.sampled_tokens != sampled:
        yield "episode.used.sampled_tokens", f"is {used.sampled_tokens}, the stream says {sampled}"
    counts = ("turns", "tool_calls", "repairs", "own_s", "waited_s")
    yield from amounts("episode.used", used, *counts)
    limits = ("turns", "tool_calls", "tokens_per_turn", "own_s", "tool_result_tokens", "repairs")
    yield from amounts("episode.limits", episode.limits, "context_tokens", "nudge_ratio", *limits)
    texts = {"final_answer": episode.final_answer or ""}
    texts |= {f"calls[{n}].name": each.name for n, each in enumerate(episode.calls)}
    texts |= {f"parse_faults[{n}].message": f.message for n, f in enumerate(episode.parse_faults)}
    for name, text in texts.items():
        if not is_unicode(text):
            yield f"episode.{name}", "holds half of a surrogate pair, which no file can"
    if episode.evaluation and used.nudged_at is not None:
        yield "episode.used.nudged_at", "is set, and in an evaluation no nudge is given"
