# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Micro-batches: samples one after the other in one row, and the tokens of them that are trained.

Contract: positions begin at 0 with each sample, which is how a model is told where one ends; the
state that scores a token is the one before it in the same sample. A sample's first token is scored
by nothing, and is never the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from rltrain.batch.cost import Cost
from rltrain.batch.pack import TooLong, pack
from rltrain.batch.sample import Sample
from rltrain.batch.stamp import Stamped


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MicroBatch:
    """T tokens of S samples, M of which are trained."""

    ids: Tensor
    """``[T]``"""
    positions: Tensor
    """``[T]``, from 0 in each sample."""
    states: Tensor
    """``[M]``: places of the states that score the trained tokens."""
    targets: Tensor
    """``[M]``: the trained tokens."""
    rollout: Tensor
    """``[M]``: their recorded log-probs, float32."""
    advantage: Tensor
    """``[M]``, float64."""
    weight: Tensor
    """``[M]``, float64: of the whole batch, stamped before it was cut."""
    sample: Tensor
    """``[M]``: which of the micro-batch's samples, from 0."""
    version: Tensor
    """``[M]``: weights that sampled it, -1 where that is not known."""
    swaps: Tensor
    """``[M]``: by how many steps they are newer than the oldest whose keys it attends to;
    where that was not recorded, how often weights had changed in its sample before."""
    lengths: tuple[int, ...]
    """Tokens of each sample."""
    which: tuple[int, ...]
    """Places of the samples in their batch."""
    temperature: float
    topk_ids: Tensor | None = None
    """``[M, k]``: the rollout's best tokens at each trained one; None where they were not kept."""
    topk_rollout: Tensor | None = None
    reference: Tensor | None = None
    """``[M]``: log-probs by the reference policy, where a step needs them."""
    old: Tensor | None = None
    """``[M]``: log-probs by the policy before the update, where a step needs them."""

    def to(self, device: torch.device | str) -> Self:
        """The same elsewhere."""
        names = (name for name in self.__slots__ if isinstance(getattr(self, name), Tensor))
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


class MixedTemperatures(ValueError):
    """Samples of one micro-batch were sampled at different temperatures."""


def cut(stamped: Stamped, cost: Cost, *, cap: int, ranks: int) -> list[list[MicroBatch]]:
    """Micro-batches of every rank, as many on each; none where nothing is trained on.

    Where there are fewer samples than ranks, some are there again with no weight.

    Raises:
        TooLong: a sample has more tokens than the cap.
        MixedTemperatures: samples do not go together.
    """
    trained = stamped.trained
    if not trained:
        return [[] for _ in range(ranks)]
    _expect_fit(stamped, cap)
    filled = trained + [trained[0]] * max(0, ranks - len(trained))
    idle = set(range(len(trained), len(filled)))
    plan = pack([len(stamped.samples[n]) for n in filled], cost, cap=cap, ranks=ranks)
    return [[_joined(stamped, filled, bin_, idle) for bin_ in rank] for rank in plan.ranks]


def _expect_fit(stamped: Stamped, cap: int) -> None:
    for sample in (stamped.samples[number] for number in stamped.trained):
        if len(sample) > cap:
            raise TooLong(
                f"{sample.trajectory_id} has {len(sample)} tokens, a micro-batch {cap} at most"
            )


def _joined(
    stamped: Stamped, filled: Sequence[int], bin_: Sequence[int], idle: set[int]
) -> MicroBatch:
    which = [filled[place] for place in bin_]
    weight = stamped.weight[which]
    weight[torch.tensor([place in idle for place in bin_])] = 0.0
    bare = joined([stamped.samples[number] for number in which], which)
    return replace(
        bare,
        advantage=stamped.advantage[which][bare.sample],
        weight=weight[bare.sample],
    )


def joined(samples: Sequence[Sample], which: Sequence[int]) -> MicroBatch:
    """Samples in one row, worth nothing and without weight, as they are scored.

    Raises:
        MixedTemperatures: they do not go together.
    """
    temperatures = {each.temperature for each in samples}
    if len(temperatures) > 1:
        shown = ", ".join(f"{each:g}" for each in sorted(temperatures))
        raise MixedTemperatures(f"samples of temperatures {shown} cannot be scored together")
    counts = torch.tensor([each.trained for each in samples])
    masks = np.concatenate([each.mask for each in samples])
    targets = np.flatnonzero(masks)
    ids = torch.from_numpy(np.concatenate([each.token_ids for each in samples]).astype(np.int64))
    return MicroBatch(
        ids=ids,
        positions=torch.cat([torch.arange(len(each)) for each in samples]),
        states=torch.from_numpy(targets - 1),
        targets=ids[targets],
        rollout=torch.from_numpy(_picked([each.logprobs for each in samples], masks)),
        advantage=torch.zeros(len(targets), dtype=torch.float64),
        weight=torch.zeros(len(targets), dtype=torch.float64),
        sample=torch.arange(len(samples)).repeat_interleave(counts),
        version=torch.from_numpy(_picked([each.weight_version for each in samples], masks)),
        swaps=torch.from_numpy(np.concatenate([_swaps(each) for each in samples])),
        lengths=tuple(map(len, samples)),
        which=tuple(which),
        temperature=temperatures.pop(),
        topk_ids=_table([each.topk_ids for each in samples], masks),
        topk_rollout=_table([each.topk_logprobs for each in samples], masks),
    )


def _swaps(sample: Sample) -> np.ndarray:
    versions = sample.weight_version[sample.mask]
    changes = np.cumsum(np.diff(versions, prepend=versions[:1]) != 0)
    if sample.kv_version is None:
        return changes
    oldest = sample.kv_version[sample.mask]
    return np.where(oldest >= 0, np.maximum(versions - oldest, 0), changes)


def _table(tables: list[np.ndarray | None], mask: np.ndarray) -> Tensor | None:
    """Rows of the trained tokens; None where a sample has none, or of another width."""
    found = [each for each in tables if each is not None]
    if len(found) < len(tables) or len({each.shape[1] for each in found}) > 1:
        return None
    return torch.from_numpy(_picked(found, mask))


def _picked(columns: list[np.ndarray], mask: np.ndarray) -> np.ndarray:
    return np.concatenate(columns)[mask]
