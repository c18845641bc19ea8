# SPDX-License-Identifier: Apache-2.0
"""Samples and trajectories for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from envkit.trajectory.types import (
    EngineRequest,
    Episode,
    Identity,
    Kind,
    Limits,
    Outcome,
    Sampling,
    Segment,
    Stop,
    Stream,
    Trajectory,
    Used,
)
from rltrain.batch.sample import Sample

BOUNDS = ((0, 4), (4, 9), (9, 15), (15, 18))
KINDS = (Kind.PROMPT, Kind.MODEL, Kind.TOOL, Kind.MODEL)


def trajectory(name: str = "task__000", sampling: Sampling | None = None) -> Trajectory:
    """A prompt of four tokens, five sampled, six shown, three sampled."""
    finishes = (None, "stop", None, "stop")
    segments = tuple(
        Segment(kind=kind, start=start, stop=stop, turn=int(start > 8), finish=finish)  # type: ignore[arg-type]
        for kind, (start, stop), finish in zip(KINDS, BOUNDS, finishes, strict=True)
    )
    mask = np.array([False] * 4 + [True] * 5 + [False] * 6 + [True] * 3)
    stream = Stream(
        token_ids=np.arange(100, 118, dtype=np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, -np.arange(18) / 10, np.nan).astype(np.float32),
        weight_version=np.where(mask, 7, -1).astype(np.int32),
        segments=segments,
    )
    requests = tuple(
        EngineRequest(
            turn=each.turn,
            started_s=0.0,
            first_token_s=0.1,
            seconds=0.2,
            prompt_tokens=each.start,
            sampled_tokens=each.stop - each.start,
            finish="stop",
        )
        for each in segments
        if each.kind is Kind.MODEL
    )
    return Trajectory(
        identity=Identity(
            trajectory_id=name,
            group_id=name.partition("__")[0],
            sample=0,
            task="task",
            sampling=sampling or Sampling(),
        ),
        episode=Episode(
            stream=stream,
            stop=Stop.FINAL,
            limits=Limits(),
            used=Used(turns=2, sampled_tokens=8),
            requests=requests,
        ),
        outcome=Outcome(reward=0.5, reward_valid=True, loss_live=True, verdict="graded"),
    )


def sample(name: str = "a__0", length: int = 12, seed: int = 0, **changes: Any) -> Sample:
    """Half of its tokens are the model's own."""
    random = np.random.default_rng(seed)
    mask = random.random(length) < 0.5
    mask[0], mask[-1] = False, True
    made = Sample(
        trajectory_id=name,
        group_id=name.partition("__")[0],
        token_ids=random.integers(0, 97, length).astype(np.int32),
        mask=mask,
        logprobs=np.where(mask, -random.exponential(1.0, length), np.nan).astype(np.float32),
        weight_version=np.where(mask, 3, -1).astype(np.int32),
        temperature=1.0,
        reward=1.0,
        valid=True,
        live=True,
        stop=Stop.FINAL,
        environment_tokens=2,
    )
    return replace(made, **changes)
