# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Sums by group, without a loop over groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Groups:
    """The groups of a batch; G is how many there are."""

    names: Tensor
    """``[G]``, as the samples have them, ascending."""
    index: Tensor
    """``[N]``: which of the names each sample is of."""

    @classmethod
    def of(cls, group: Tensor) -> Self:
        """Groups of samples by their names ``[N]``."""
        names, index = torch.unique(group, return_inverse=True)
        return cls(names=names, index=index)

    def sum(self, values: Tensor) -> Tensor:
        """``[N]`` to ``[G]``."""
        return values.new_zeros(len(self.names)).index_add(0, self.index, values)

    def each(self, of_groups: Tensor) -> Tensor:
        """``[G]`` to ``[N]``: what each sample's group has."""
        return of_groups[self.index]

    def range(self, values: Tensor, where: Tensor) -> Tensor:
        """``[G]``: the largest less the smallest of the values that count; -inf for none."""
        inf = float("inf")
        empty = values.new_full((len(self.names),), inf)
        low = empty.scatter_reduce(0, self.index, values.masked_fill(~where, inf), "amin")
        high = (-empty).scatter_reduce(0, self.index, values.masked_fill(~where, -inf), "amax")
        return high - low
