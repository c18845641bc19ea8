# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What a loss did to the tokens it was given: masked by sign, ratios, divergences, entropy.

Contract: `Seen` of micro-batches and ranks are put together and give the same figures as the whole
batch in one; every token counts once. Nothing here has a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import torch
from torch import Tensor

from rltrain.objective.loss.ratio import ratio_of
from rltrain.objective.types import Judged, Tokens

AGES: Final = 3
"""In steps, that are told apart; what is older is with the last."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Seen:
    """Trained tokens of some micro-batches, on the CPU. Tensors are ``[tokens]``."""

    positive: Tensor
    """Sign of the advantage: 1, 0, -1."""
    masked: Tensor
    difference: Tensor
    """l - mu, clamped."""
    variation: Tensor
    """\\|pi - pi_mu\\|"""
    entropy: Tensor
    """Nats; empty where it was not taken."""
    version: Tensor
    """Weights that sampled it, -1 where that is not known; empty where it was not given."""
    swaps: Tensor
    """By how many steps these are newer than the oldest whose keys and values it attends to; empty
    where that was not given."""

    @classmethod
    def of(
        cls,
        tokens: Tokens,
        judged: Judged,
        entropy: Tensor | None = None,
        version: Tensor | None = None,
        swaps: Tensor | None = None,
    ) -> Self:
        """What a loss did to a micro-batch."""
        ratio, mask = ratio_of(tokens), tokens.mask
        moved = (ratio.probability - ratio.rollout_probability).abs()
        return cls(
            positive=ratio.advantage.detach()[mask].sign().to(torch.int8).cpu(),
            masked=judged.masked[mask].cpu(),
            difference=ratio.difference.detach()[mask].cpu(),
            variation=moved[mask].cpu(),
            entropy=_kept(entropy, mask),
            version=_kept(version, mask),
            swaps=_kept(swaps, mask),
        )

    @classmethod
    def together(cls, parts: Iterable[Self]) -> Self:
        """Of all of them, at least one."""
        every = list(parts)
        return cls(
            **{name: torch.cat([getattr(each, name) for each in every]) for name in cls.__slots__}
        )

    def figures(self, version: int | None = None) -> dict[str, float]:
        """By name; NaN where there are no tokens to tell it by.

        ``difference`` and its like are of the tokens that these weights sampled, as only those
        tell the engine's numbers from what training has changed; of all where none are named.
        Those that were sampled after a swap may rest on keys and values of older weights, and are
        told by ``swapped`` and its like.
        """
        ratio = self.difference.double().exp()
        fresh, swapped = self._apart(version)
        return {
            "masked_positive": _mean(self.masked[self.positive > 0]),
            "masked_negative": _mean(self.masked[self.positive < 0]),
            "ratio_p50": _quantile(ratio, 0.5),
            "ratio_p99": _quantile(ratio, 0.99),
            "ratio_max": _quantile(ratio, 1.0),
            "tv": _mean(self.variation),
            "kl": _mean(torch.expm1(self.difference.double()) - self.difference.double()),
            "entropy": _mean(self.entropy),
            **_differences("difference", fresh),
            **_differences("swapped", swapped),
            **self._by_age(version),
        }

    def _apart(self, version: int | None) -> tuple[Tensor, Tensor]:
        """Differences of the tokens that these weights sampled: before any swap, and after one."""
        if version is None:
            return self.difference, self.difference[:0]
        own = self.version == version
        after = own & (self.swaps > 0) if len(self.swaps) else torch.zeros_like(own)
        return self.difference[own & ~after], self.difference[after]

    def _by_age(self, version: int | None) -> dict[str, float]:
        """Mean differences of the tokens that older weights sampled; of the last age and above."""
        if version is None:
            return {}
        ages = torch.where(self.version < 0, -1, version - self.version).clamp(max=AGES)
        return {
            f"difference_age_{age}": _mean(self.difference[ages == age].abs())
            for age in range(1, AGES + 1)
        }


def _differences(name: str, found: Tensor) -> dict[str, float]:
    sizes = found.abs()
    return {
        name: _mean(sizes),
        f"{name}_p99": _quantile(sizes, 0.99),
        f"{name}_max": _quantile(sizes, 1.0),
        f"{name}_tokens": float(len(sizes) or "nan"),
    }


def _kept(values: Tensor | None, mask: Tensor) -> Tensor:
    return torch.empty(0) if values is None else values.detach()[mask].cpu()


def _mean(values: Tensor) -> float:
    return float(values.double().mean()) if len(values) else float("nan")


def _quantile(values: Tensor, share: float) -> float:
    """By sorting: torch's own refuses more than 16 million."""
    if not len(values):
        return float("nan")
    ordered = values.sort().values
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(torch.lerp(ordered[low], ordered[high], place - low))
