# SPDX-License-Identifier: Apache-2.0
"""What is scored twice after each sync: fixed ids drawn at random, and the newest trajectories.

Contract: the same on every rank of the trainer and for every engine, at temperature 1, and never so
long that an engine has no room for the one token that it must sample after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from envkit.trajectory.types import Ids, Mask, Stop
from rltrain.batch.sample import Sample
from rltrain.sync.config import CanaryConfig


def fixed_probes(config: CanaryConfig, vocabulary: int, context_tokens: int) -> list[Sample]:
    """All but the first token of each are scored."""
    length = min(config.tokens, context_tokens - 1)
    drawn = np.random.default_rng(0)
    return [
        _probe(f"fixed-{number}", drawn.integers(0, vocabulary, length).astype(np.int32))
        for number in range(config.sequences)
    ]


def recent_probes(samples: Sequence[Sample], most: int, context_tokens: int) -> list[Sample]:
    """The last of them whose sampled tokens can be scored; those tokens are."""
    found: list[Sample] = []
    for sample in reversed(samples):
        probe = _cut(sample, context_tokens - 1)
        if len(found) < most and probe.trained:
            found.append(probe)
    return found[::-1]


def _cut(sample: Sample, length: int) -> Sample:
    return replace(
        sample,
        token_ids=sample.token_ids[:length],
        mask=sample.mask[:length],
        logprobs=sample.logprobs[:length],
        weight_version=sample.weight_version[:length],
        temperature=1.0,
        topk_ids=None,
        topk_logprobs=None,
    )


def _probe(name: str, ids: Ids) -> Sample:
    mask: Mask = np.arange(len(ids)) > 0
    return Sample(
        trajectory_id=name,
        group_id=name,
        token_ids=ids,
        mask=mask,
        logprobs=np.full(len(ids), np.nan, np.float32),
        weight_version=np.full(len(ids), -1, np.int32),
        temperature=1.0,
        reward=None,
        valid=False,
        live=False,
        stop=Stop.FINAL,
        environment_tokens=0,
    )
