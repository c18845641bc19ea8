# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The gate of a live run: before it trains on, engines and trainer agree, and enough was compared.

Contract: each engine has scored at least so many tokens that the model sampled, of at least so many
recent trajectories, under the weights that are trained next. Fewer is not measured, and what is not
measured has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rltrain.gates.config import GatesConfig
from rltrain.refused import Stopped
from rltrain.sync.canary import Checked, Compared

TRAJECTORIES: Final = 8
"""At least."""


class GateFailed(Stopped):
    """Training must not go on."""


def measured(checked: Checked, config: GatesConfig) -> bool:
    """Whether enough was compared on each engine."""
    return not [*_short(checked, config)]


def expect_passed(checked: Checked, config: GatesConfig) -> None:
    """Go on.

    Raises:
        GateFailed: engines and trainer differ, or too little was compared.
    """
    for why in (*_short(checked, config), *_apart(checked, config)):
        raise GateFailed(
            f"gate: weights {checked.version}: {why}; gates.override=true goes on all the same"
        )


def figures(checked: Checked) -> dict[str, float]:
    """Of the worst engine."""
    recent = [each.recent for each in checked.replicas if each.recent]
    fixed = [each.fixed for each in checked.replicas]
    told = {"gate/seconds": checked.seconds}
    if fixed:
        told |= {"gate/fixed_mean": max(each.mean for each in fixed)}
    if recent:
        told |= {
            "gate/mean": max(each.mean for each in recent),
            "gate/p99": max(each.p99 for each in recent),
            "gate/max": max(each.most for each in recent),
            "gate/tokens": min(each.tokens for each in recent),
            "gate/trajectories": min(each.trajectories for each in recent),
        }
    return told


def _short(checked: Checked, config: GatesConfig) -> Iterator[str]:
    if not checked.replicas:
        yield "no engine was compared"
    for each in checked.replicas:
        tokens, rows = _counts(each)
        if tokens < config.least_tokens or rows < TRAJECTORIES:
            yield (
                f"{each.replica}: not measured: {tokens:,} sampled tokens of {rows} trajectories"
                f" were compared, at least {config.least_tokens:,} of {TRAJECTORIES} are wanted"
            )


def _counts(each: Compared) -> tuple[int, int]:
    return (each.recent.tokens, each.recent.trajectories) if each.recent else (0, 0)


def _apart(checked: Checked, config: GatesConfig) -> Iterator[str]:
    limit = config.logprob_difference
    for each in checked.replicas:
        if each.recent and not each.recent.mean <= limit:
            mean = each.recent.mean
            yield f"{each.replica}: mean |trainer - engine| is {mean:.2e}, above {limit:g}"
