# SPDX-License-Identifier: Apache-2.0
"""Trajectories spoiled as the usual mistakes do it, each still keeping the store's invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from envkit.agent.tokens.vocabulary import Vocabulary
from envkit.durable import write_durably
from envkit.trajectory.columns import CHECKSUM, encode
from envkit.trajectory.digest import ids_digest
from envkit.trajectory.head import head_of
from envkit.trajectory.index import SCHEMA
from envkit.trajectory.invariants import mask_of
from envkit.trajectory.segment import Row, encode_segment
from envkit.trajectory.types import Kind, Segment, Trajectory
from envkit.trajectory.writer import Writer

type Change = Callable[[Trajectory], Trajectory]


def write(place: Path, rows: Iterable[Trajectory]) -> Path:
    """A store of them."""
    with Writer.open(place) as writer:
        for row in rows:
            writer.append(row)
    return place


def write_unchecked(place: Path, rows: Iterable[Trajectory], version: str = SCHEMA) -> Path:
    """The same by a writer that checks nothing, and may be of another version."""
    made = [
        Row(head=head_of(row), checksum=batch.column(CHECKSUM)[0].as_py(), batch=batch)
        for row in rows
        for batch in (encode(row),)
    ]
    place.mkdir()
    write_durably(place / "segment-00000001.arrow", encode_segment(made, version))
    return place


def flip_a_byte(store: Path, share: float = 0.5) -> None:
    """Of its first segment, so far into the file."""
    file = min(store.glob("segment-*.arrow"))
    data = bytearray(file.read_bytes())
    data[int(len(data) * share)] ^= 0x10
    file.write_bytes(data)


def shifted(row: Trajectory, by: int) -> Trajectory:
    """Mask, log-probs and segments stand so many places later; what has no place is lost."""
    stream = row.episode.stream
    length = len(stream.token_ids)
    bounds = [each.start + by if each.start else 0 for each in stream.segments] + [length]
    segments = tuple(
        replace(each, start=start, stop=stop)
        for each, start, stop in zip(stream.segments, bounds, bounds[1:], strict=False)
        if start < stop
    )
    logprobs = np.roll(stream.logprobs, by)
    mask = mask_of(segments, length)
    logprobs[mask & np.isnan(logprobs)] = -1.0
    return _rebuilt(row, stream.token_ids, logprobs, segments)


def rolled(row: Trajectory, by: int) -> Trajectory:
    """Log-probs alone stand so many places later, round within their turn."""
    logprobs = row.episode.stream.logprobs.copy()
    for each in row.episode.stream.segments:
        if each.kind is Kind.MODEL:
            logprobs[each.start : each.stop] = np.roll(logprobs[each.start : each.stop], by)
    return with_logprobs(row, logprobs)


def retokenised(row: Trajectory, words: Vocabulary) -> Trajectory:
    """Every turn decoded and encoded; log-probs cut, or padded with zeros."""
    stream = row.episode.stream
    ids, logprobs, segments = list[Any](), list[Any](), list[Segment]()
    start = 0
    for each in stream.segments:
        here = slice(each.start, each.stop)
        mine, said = stream.token_ids[here], stream.logprobs[here]
        if each.kind is Kind.MODEL:
            again = words.encode_whole(words.decode(mine.tolist()))
            mine = np.array(again, np.int32)
            said = np.pad(said, (0, max(0, len(mine) - len(said))))[: len(mine)]
        ids.append(mine)
        logprobs.append(said)
        segments.append(replace(each, start=start, stop=start + len(mine)))
        start += len(mine)
    return _rebuilt(row, np.concatenate(ids), np.concatenate(logprobs), tuple(segments))


def recorded_at(row: Trajectory, temperature: float) -> Trajectory:
    """The row says that it was sampled at another temperature."""
    mode = "raw" if temperature == 1.0 else "processed"
    sampling = replace(row.identity.sampling, temperature=temperature, logprobs_mode=mode)
    return replace(row, identity=replace(row.identity, sampling=sampling))


def of_model(row: Trajectory, digest: str) -> Trajectory:
    """The row says which weights sampled it."""
    engine = replace(row.identity.engine, model_digest=digest)
    return replace(row, identity=replace(row.identity, engine=engine))


def of_version(row: Trajectory, version: int, kv_version: int = -1) -> Trajectory:
    """It was sampled by a version of the weights, attending to keys and values of another."""
    stream = row.episode.stream
    versions = np.where(stream.loss_mask, version, -1).astype(np.int32)
    episode = replace(
        row.episode,
        stream=replace(stream, weight_version=versions),
        requests=tuple(replace(each, kv_version=kv_version) for each in row.episode.requests),
    )
    return replace(row, episode=episode)


def with_logprobs(row: Trajectory, logprobs: Any) -> Trajectory:
    """Other log-probs are recorded."""
    stream = replace(row.episode.stream, logprobs=logprobs.astype(np.float32))
    return replace(row, episode=replace(row.episode, stream=stream))


def with_ids(row: Trajectory, ids: Any) -> Trajectory:
    """Other ids are recorded."""
    stream = replace(row.episode.stream, token_ids=ids.astype(np.int32))
    return replace(row, episode=replace(row.episode, stream=stream))


def _rebuilt(row: Trajectory, ids: Any, logprobs: Any, segments: tuple[Segment, ...]) -> Trajectory:
    """With all that has to agree with a stream made to."""
    mask = mask_of(segments, len(ids))
    known = row.episode.stream.weight_version.max(initial=-1)
    stream = replace(
        row.episode.stream,
        token_ids=ids,
        loss_mask=mask,
        logprobs=np.where(mask, logprobs, np.nan).astype(np.float32),
        weight_version=np.where(mask, known, -1).astype(np.int32),
        segments=segments,
        topk_ids=None,
        topk_logprobs=None,
    )
    models = [each for each in segments if each.kind is Kind.MODEL]
    shown = {each.turn: ids[each.start : each.stop] for each in segments if each.kind is Kind.TOOL}
    episode = replace(
        row.episode,
        stream=stream,
        used=replace(row.episode.used, sampled_tokens=int(mask.sum())),
        requests=tuple(
            replace(request, prompt_tokens=each.start, sampled_tokens=each.stop - each.start)
            for request, each in zip(row.episode.requests, models, strict=True)
        ),
        calls=tuple(
            replace(each, observation_sha256=ids_digest(shown[each.turn]))
            if each.turn in shown
            else each
            for each in row.episode.calls
        ),
    )
    return replace(row, episode=episode)
