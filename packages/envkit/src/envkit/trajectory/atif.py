# SPDX-License-Identifier: Apache-2.0
"""A trajectory in ATIF, the format that Harbor's viewer and other auditors read.

Contract: Harbor's own models take it, of every version we support; nothing here imports Harbor.
Each token stands in it once: what was sampled in the metrics of its step, with its logprob, every
other segment's ids in ``extra`` beside its number in the stream, so that the stream can be put
together again. What ATIF has no field for (reward, fault, stop, weight versions) is in ``extra``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from envkit.trajectory.plain import to_plain
from envkit.trajectory.text import (
    CallSeen,
    CallText,
    Decode,
    Hear,
    Part,
    Turn,
    parts,
    plain_text,
    turns,
)
from envkit.trajectory.types import Episode, Identity, Kind, Outcome, Stream

VERSION: Final = "ATIF-v1.8"


def to_atif(
    identity: Identity,
    episode: Episode,
    decode: Decode,
    *,
    outcome: Outcome | None = None,
    hear: Hear = plain_text,
    texts: Mapping[str, CallText] | None = None,
    prompt: Sequence[tuple[str, str]] = (),
    tools: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A document that JSON can hold.

    ``prompt`` is the messages it was rendered from, each a role (system or user) and its text;
    where it is not given, the prompt stands as the one text it was. ``tools`` are as OpenAI has
    them.
    """
    stream = episode.stream
    heard = turns(episode, decode, hear=hear, texts=texts)
    steps = _prompt(stream, parts(episode, decode)[:1], prompt)
    for turn in heard:
        steps += [_agent(turn, episode), *_harness(turn, stream)]
    if not steps:
        steps = [{"source": "system", "message": "", "extra": {"note": "nothing was rendered"}}]
    agent = {
        "name": identity.harness or "envkit",
        "version": identity.harness_version or "unknown",
        "model_name": identity.engine.model or None,
        "tool_definitions": [dict(tool) for tool in tools] or None,
        "extra": {"engine": to_plain(identity.engine), "sampling": to_plain(identity.sampling)},
    }
    return _given(
        {
            "schema_version": VERSION,
            "session_id": identity.trajectory_id or None,
            "trajectory_id": identity.trajectory_id or None,
            "agent": _given(agent),
            "steps": [{"step_id": number, **_given(step)} for number, step in enumerate(steps, 1)],
            "final_metrics": _metrics(episode, len(steps)),
            "extra": _facts(identity, episode, outcome),
        }
    )


def _prompt(
    stream: Stream, first: Sequence[Part], messages: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    if not first:
        return []
    given = messages or [("user", first[0].text)]
    steps: list[dict[str, Any]] = [{"source": role, "message": text} for role, text in given]
    steps[-1]["extra"] = _ids(stream, first[0])
    return steps


def _agent(turn: Turn, episode: Episode) -> dict[str, Any]:
    shown = [part for part in turn.after if part.segment.kind is Kind.TOOL]
    results = [_result(call) for call in turn.calls if call.result is not None]
    if shown and not results:
        results = [{"content": part.text} for part in shown]
    extra: dict[str, Any] = {"segment": turn.model.index, "finish": turn.model.segment.finish}
    if shown:
        extra["observation"] = _ids(episode.stream, shown[0])
    faults = [to_plain(f) for f in episode.parse_faults if f.turn == turn.model.segment.turn]
    return {
        "source": "agent",
        "message": turn.said.content,
        "reasoning_content": turn.said.thinking or None,
        "tool_calls": [_call(each) for each in turn.calls] or None,
        "observation": {"results": results} if results else None,
        "metrics": _sampled(turn, episode),
        "llm_call_count": 1,
        "extra": {**extra, **({"parse_faults": faults} if faults else {})},
    }


def _harness(turn: Turn, stream: Stream) -> list[dict[str, Any]]:
    """What the loop said or added: steps of the system."""
    return [
        {"source": "system", "message": part.text, "extra": _ids(stream, part)}
        for part in turn.after
        if part.segment.kind is Kind.HARNESS
    ]


def _call(call: CallSeen) -> dict[str, Any]:
    known = {} if call.arguments is None else dict(call.arguments)
    record = call.record
    return {
        "tool_call_id": record.call_id,
        "function_name": record.name,
        "arguments": known,
        "extra": {
            "fingerprint": record.fingerprint,
            "arguments_known": call.arguments is not None,
            "started_s": record.started_s,
        },
    }


def _result(call: CallSeen) -> dict[str, Any]:
    record = call.record
    return {
        "source_call_id": record.call_id,
        "content": call.result,
        "extra": {
            "ok": record.ok,
            "code": record.code,
            "seconds": record.seconds,
            "cut_tokens": record.cut_tokens,
        },
    }


def _sampled(turn: Turn, episode: Episode) -> dict[str, Any]:
    segment = turn.model.segment
    place = slice(segment.start, segment.stop)
    request = next(each for each in episode.requests if each.turn == segment.turn)
    versions = episode.stream.weight_version[place].tolist()
    runs = [[i, v] for i, v in enumerate(versions) if not i or versions[i - 1] != v]
    return {
        "prompt_tokens": segment.start,
        "completion_tokens": segment.stop - segment.start,
        "completion_token_ids": episode.stream.token_ids[place].tolist(),
        "logprobs": episode.stream.logprobs[place].tolist(),
        "extra": {"weight_versions": runs, "request": to_plain(request)},
    }


def _metrics(episode: Episode, steps: int) -> dict[str, Any]:
    return {
        "total_prompt_tokens": sum(each.prompt_tokens for each in episode.requests),
        "total_completion_tokens": episode.used.sampled_tokens,
        "total_steps": steps,
        "extra": {"used": to_plain(episode.used), "limits": to_plain(episode.limits)},
    }


def _facts(identity: Identity, episode: Episode, outcome: Outcome | None) -> dict[str, Any]:
    names = ("group_id", "sample", "task", "task_digest", "image_digest")
    digests = ("tokenizer_digest", "template_digest", "template_family")
    return {
        **{name: getattr(identity, name) for name in (*names, *digests)},
        "stop": episode.stop.value,
        "final_answer": episode.final_answer,
        "evaluation": episode.evaluation,
        "outcome": None if outcome is None else to_plain(outcome),
    }


def _ids(stream: Stream, part: Part) -> dict[str, Any]:
    segment = part.segment
    return {
        "segment": part.index,
        "kind": segment.kind.value,
        "token_ids": stream.token_ids[segment.start : segment.stop].tolist(),
    }


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that are there."""
    return {name: value for name, value in fields.items() if value is not None}
