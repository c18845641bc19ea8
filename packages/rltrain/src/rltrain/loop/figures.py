# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The numbers of a step.

A mean reward never stands alone: beside it are the share of samples that have no valid one, and
what the mean would be were all of those 0 or all of those 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from rltrain.batch.sample import Sample
from rltrain.batch.stamp import Stamped
from rltrain.objective.report import AGES
from rltrain.objective.shape import OVERLONG
from rltrain.policy.types import Stepped

NAN = float("nan")


def figures(stamped: Stamped, stepped: Stepped | None, version: int) -> dict[str, float]:
    """By name; NaN for what there is nothing to measure by.

    ``stepped`` is None where there was nothing to take a step on, ``version`` that of the weights
    that the step changed.
    """
    samples = stamped.samples
    return {
        **_rewards(samples),
        **_groups(stamped),
        **_lengths(samples),
        **_behaviour(samples),
        **_staleness([samples[number] for number in stamped.trained], version),
        **(_step(stepped, version) if stepped else {}),
    }


def _rewards(samples: Sequence[Sample]) -> dict[str, float]:
    valid = [each.reward for each in samples if each.valid and each.reward is not None]
    count, lost = len(samples), len(samples) - len(valid)
    return {
        "reward/mean": _mean(valid),
        "reward/fault_share": lost / count if count else NAN,
        "reward/low": sum(valid) / count if count else NAN,
        "reward/high": (sum(valid) + lost) / count if count else NAN,
        "reward/count": count,
    }


def _groups(stamped: Stamped) -> dict[str, float]:
    reasons = Counter(stamped.dropped.values())
    trained = {stamped.samples[number].group_id for number in stamped.trained}
    return {
        "groups/trained": len(trained),
        "groups/few_valid": reasons["few_valid"],
        "groups/no_variance": reasons["no_variance"],
        "samples/trained": len(stamped.trained),
        "tokens/trained": sum(stamped.samples[number].trained for number in stamped.trained),
        "tokens/all": sum(map(len, stamped.samples)),
    }


def _lengths(samples: Sequence[Sample]) -> dict[str, float]:
    lengths = [len(each) for each in samples]
    return {
        "length/p50": float(np.quantile(lengths, 0.5)) if lengths else NAN,
        "length/p90": float(np.quantile(lengths, 0.9)) if lengths else NAN,
        "length/max": max(lengths, default=0),
        "length/model_mean": _mean([each.trained for each in samples]),
    }


def _behaviour(samples: Sequence[Sample]) -> dict[str, float]:
    turns, calls = sum(each.turns for each in samples), sum(each.calls for each in samples)
    return {
        "behaviour/turns": turns / len(samples) if samples else NAN,
        "behaviour/tokens_per_turn": sum(each.trained for each in samples) / turns
        if turns
        else NAN,
        "behaviour/calls_ok": sum(each.calls_ok for each in samples) / calls if calls else NAN,
        "behaviour/cut_off": _mean([each.stop.value in OVERLONG for each in samples]),
    }


def _staleness(trained: Sequence[Sample], version: int) -> dict[str, float]:
    """Of a sample: the version that is changed less the oldest that sampled it; by samples."""
    oldest = [int(each.weight_version[each.mask].min()) for each in trained]
    known = [version - each for each in oldest if each >= 0]
    return {
        "staleness/mean": _mean(known),
        "staleness/max": max(known, default=NAN),
        "staleness/unknown": 1 - len(known) / len(trained) if trained else NAN,
    }


OF_LOGPROBS: Final = {
    "difference": "logprob/difference",
    "difference_p99": "logprob/p99",
    "difference_max": "logprob/max",
    "difference_tokens": "logprob/tokens",
    "swapped": "logprob/swapped",
    "swapped_p99": "logprob/swapped_p99",
    "swapped_max": "logprob/swapped_max",
    "swapped_tokens": "logprob/swapped_tokens",
    **{f"difference_age_{age}": f"logprob/age_{age}" for age in range(1, AGES + 1)},
}
"""Of tokens that the very weights sampled which the step changed, before and after a swap; and of
older ones by their age."""


def _step(stepped: Stepped, version: int) -> dict[str, float]:
    seen = stepped.seen.figures(version)
    return {
        "loss/value": stepped.loss,
        **{OF_LOGPROBS.get(name, f"loss/{name}"): value for name, value in seen.items()},
        "optimizer/gradient_norm": stepped.gradient_norm,
        "optimizer/learning_rate": stepped.learning_rate,
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else NAN
