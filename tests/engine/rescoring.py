# SPDX-License-Identifier: Apache-2.0
"""What the engine itself says of stored ids: their logprobs as a prompt, without a prefix cache."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envkit.trajectory.types import Stream

_ANSWER_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Between recorded logprobs and the engine's second thoughts, in nats."""

    tokens: int
    mean: float
    p99: float
    most: float


def rescore(url: str, model: str, ids: Sequence[int]) -> npt.NDArray[np.float64]:
    """The logprob of every id after those before it; NaN for the first."""
    body = {
        "model": model,
        "prompt": [int(each) for each in ids],
        "max_tokens": 1,
        "temperature": 1.0,
        "prompt_logprobs": 0,
    }
    request = urllib.request.Request(
        f"{url}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
        (choice,) = json.load(answer)["choices"]
    scored = choice["prompt_logprobs"]
    assert len(scored) == len(ids)
    return np.array(
        [np.nan, *(at[str(each)]["logprob"] for at, each in zip(scored[1:], ids[1:], strict=True))]
    )


def rescored(streams: Sequence[Stream], url: str, model: str) -> Difference:
    """Recorded logprobs against the engine's own scores of the stored ids."""
    scored = [rescore(url, model, each.token_ids.tolist()) for each in streams]
    return difference([each.logprobs for each in streams], scored)


def difference(
    recorded: Sequence[npt.NDArray[np.float32]], scored: Sequence[npt.NDArray[np.float64]]
) -> Difference:
    """Over all sampled tokens together: those that have a recorded logprob."""
    apart = np.concatenate(
        [
            np.abs(ours[~np.isnan(ours)] - theirs[~np.isnan(ours)])
            for ours, theirs in zip(recorded, scored, strict=True)
        ]
    )
    return Difference(
        tokens=len(apart),
        mean=float(apart.mean()),
        p99=float(np.quantile(apart, 0.99)),
        most=float(apart.max()),
    )
