# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Whether a model keeps packed samples apart.

Samples of a micro-batch stand in one row, and only their positions say where one ends. A model that
does not heed them (a recurrence without bounds, a mask of one's own) lets one sample see another:
its log-probs are of no policy that ever sampled. Such a model may not be trained packed.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from rltrain.batch.micro import MicroBatch

LENGTHS: Final = (9, 14, 11)
"""Tokens of the probe's samples."""
ROUNDING: Final = {torch.bfloat16: 0.1}
"""Nats by which a sample's log-probs may differ alone and packed, 1e-3 for any other type: kernels
add up in other orders. A change of one sample may not move another by anything."""


class Leaks(Exception):
    """Log-probs of a sample depend on what is packed beside it."""


def expect_apart(scorer: nn.Module, vocabulary: int, dtype: torch.dtype = torch.float32) -> None:
    """Prove on a probe that samples do not see each other.

    Raises:
        Leaks: they do; the message says how much.
    """
    ids = _ids(vocabulary, seed=0)
    whole = _scored(scorer, ids)
    for number in range(len(LENGTHS) - 1):
        _expect_same(whole, _scored(scorer, _changed(ids, number, vocabulary)), number)
    for number in range(len(LENGTHS)):
        alone = _scored(scorer, [ids[number]])[0]
        if (off := float((alone - whole[number]).abs().max())) > ROUNDING.get(dtype, 1e-3):
            raise Leaks(f"sample {number} scores otherwise alone, by {off:.2g} nats at most")


def _expect_same(whole: list[Tensor], other: list[Tensor], changed: int) -> None:
    for number in range(len(LENGTHS)):
        off = float((whole[number] - other[number]).abs().max())
        if number != changed and off > 0.0:
            raise Leaks(f"a change of sample {changed} moves sample {number} by {off:.2g} nats")


def _ids(vocabulary: int, seed: int) -> list[Tensor]:
    make = torch.Generator().manual_seed(seed)
    return [torch.randint(0, vocabulary, (length,), generator=make) for length in LENGTHS]


def _changed(ids: list[Tensor], number: int, vocabulary: int) -> list[Tensor]:
    other = [each.clone() for each in ids]
    other[number] = (other[number] + 1 + torch.arange(len(other[number]))) % vocabulary
    return other


@torch.no_grad()
def _scored(scorer: nn.Module, ids: list[Tensor]) -> list[Tensor]:
    """Log-probs of every token but the first of each sample."""
    lengths = tuple(map(len, ids))
    starts = torch.tensor([0, *lengths]).cumsum(0)
    places = [torch.arange(1, n) + start for n, start in zip(lengths, starts, strict=False)]
    whole, targets = torch.cat(ids), torch.cat(places)
    nothing = torch.zeros(len(targets))
    batch = MicroBatch(
        ids=whole,
        positions=torch.cat([torch.arange(length) for length in lengths]),
        states=targets - 1,
        targets=whole[targets],
        rollout=nothing,
        advantage=nothing,
        weight=nothing,
        sample=torch.arange(len(ids)).repeat_interleave(torch.tensor(lengths) - 1),
        version=nothing.int(),
        swaps=nothing.int(),
        lengths=lengths,
        which=tuple(range(len(ids))),
        temperature=1.0,
    )
    device = next(scorer.parameters()).device
    logp = scorer(batch.to(device))[0].cpu()
    return list(logp.split([length - 1 for length in lengths]))
