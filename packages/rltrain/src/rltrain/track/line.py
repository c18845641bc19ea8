# SPDX-License-Identifier: Apache-2.0
"""A step in one line."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Final

NAN: Final = float("nan")


def step_line(numbers: Mapping[str, float]) -> str:
    """A step in one line; a mean reward with its fault share and bounds."""
    return (
        f"reward {numbers['reward/mean']:.3f} (faults {numbers['reward/fault_share']:.0%},"
        f" {numbers['reward/low']:.3f} to {numbers['reward/high']:.3f})"
        f"{_mismatch(numbers)}  TV {numbers.get('loss/tv', NAN):.3f}"
        f"  entropy {numbers.get('loss/entropy', NAN):.2f}"
        f"  masked + {numbers.get('loss/masked_positive', NAN):.1%}"
        f" - {numbers.get('loss/masked_negative', NAN):.1%}"
        f"  |g| {numbers.get('optimizer/gradient_norm', NAN):.2g}"
        f"  {numbers['tokens/trained']:,.0f} tokens  {numbers['seconds/total']:.1f} s"
    )


def _mismatch(numbers: Mapping[str, float]) -> str:
    """Of engine and trainer, where the step changed the very weights that sampled."""
    value = numbers.get("logprob/difference", NAN)
    return f"  mismatch {value:.2g}" if isfinite(value) else ""
