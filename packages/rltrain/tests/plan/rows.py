# SPDX-License-Identifier: Apache-2.0
"""Trajectories with times, in stores that envkit wrote; their tokens mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from envkit.trajectory.types import (
    AttemptNote,
    EngineRequest,
    Episode,
    Identity,
    Kind,
    Limits,
    Outcome,
    Segment,
    Stop,
    Stream,
    Trajectory,
    Used,
)
from envkit.trajectory.writer import Writer


def row(
    group: str,
    sample: int,
    *,
    began: float = 1000.0,
    turns: Sequence[tuple[float, float]] = ((0.0, 2.0), (6.0, 2.0)),
    said: int = 50,
    seconds: float = 20.0,
    valid: bool = True,
) -> Trajectory:
    """One that began at a Unix time and took so long; ``turns`` are when each request began, from
    the start of its episode, and how long it took."""
    stream = _stream(len(turns), said)
    starts = [each.start for each in stream.segments if each.kind is Kind.MODEL]
    return Trajectory(
        identity=Identity(
            trajectory_id=f"{group}__{sample}", group_id=group, sample=sample, task=group
        ),
        episode=Episode(
            stream=stream,
            stop=Stop.FINAL,
            limits=Limits(context_tokens=100_000),
            used=Used(turns=len(turns), sampled_tokens=said * len(turns), own_s=1.0),
            requests=tuple(
                EngineRequest(
                    turn=turn,
                    started_s=at,
                    first_token_s=took,
                    seconds=took,
                    prompt_tokens=start,
                    sampled_tokens=said,
                    finish="stop",
                )
                for turn, ((at, took), start) in enumerate(zip(turns, starts, strict=True))
            ),
            final_answer="done",
        ),
        outcome=Outcome(
            reward=0.5 if valid else None,
            reward_valid=valid,
            loss_live=valid,
            verdict="graded" if valid else "no_verdict",
            attempts=(
                AttemptNote(
                    number=1,
                    started_at=began,
                    seconds=seconds,
                    reward=0.5 if valid else None,
                    reward_valid=valid,
                ),
            ),
            phases={"act": seconds},
        ),
    )


def written(store: Path, rows: Sequence[Trajectory]) -> Path:
    """A store of them."""
    with Writer.open(store) as writer:
        for each in rows:
            writer.append(each)
    return store


def _stream(turns: int, said: int) -> Stream:
    """A prompt of 100, turns of the model, 30 tokens of a tool after each but the last."""
    kinds = [(Kind.PROMPT, 100, 0)]
    for turn in range(turns):
        kinds += [(Kind.MODEL, said, turn), (Kind.TOOL, 30, turn)]
    segments: list[Segment] = []
    start = 0
    for kind, length, turn in kinds[:-1]:
        finish = "stop" if kind is Kind.MODEL else None
        segments.append(
            Segment(kind=kind, start=start, stop=start + length, turn=turn, finish=finish)
        )
        start += length
    mask = np.zeros(start, np.bool_)
    for each in segments:
        mask[each.start : each.stop] = each.kind is Kind.MODEL
    return Stream(
        token_ids=np.ones(start, np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, -1.0, np.nan).astype(np.float32),
        weight_version=np.where(mask, 0, -1).astype(np.int32),
        segments=tuple(segments),
    )
