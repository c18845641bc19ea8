# SPDX-License-Identifier: Apache-2.0
"""How long a replay waits before a call, in place of the model that would be sampling.

Contract: the same specification, seed and recording give the same pauses. ``recorded`` takes the
``think_s`` of each recorded call, ``recorded*0.1`` a tenth of it; ``lognormal:MEDIAN_S,SIGMA``
draws; a plain number of seconds is every pause; nothing is no pause.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from envkit.agent.recording import Call
from envkit.fault import HarnessError

MOST_S: Final = 3600.0
"""One pause of an hour is longer than any timeout of a turn: a slip of the unit."""
MOST_SIGMA: Final = 4.0
"""Beyond it one draw in a hundred is 10,000 times the median."""

Pauses = Callable[[Call], float]
"""Seconds to wait before a call."""

_SCALED = re.compile(r"recorded(?:\*(?P<scale>\S+))?")
_DRAWN = re.compile(r"lognormal:(?P<median>[^,]+),(?P<sigma>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Think:
    """A specification that was read."""

    kind: Literal["none", "recorded", "lognormal", "fixed"] = "none"
    seconds: float = 0.0
    """The median of what is drawn, or every pause."""
    scale: float = 1.0
    """What recorded pauses are multiplied by."""
    sigma: float = 0.0
    """Standard deviation of the logarithm of what is drawn."""

    def pauses(self, seed: str) -> Pauses:
        """The pauses of one trial, in the order of its calls."""
        dice = random.Random(seed)
        match self.kind:
            case "recorded":
                return lambda call: min(self.scale * call.think_s, MOST_S)
            case "lognormal":
                mu = math.log(self.seconds)
                return lambda _: min(dice.lognormvariate(mu, self.sigma), MOST_S)
            case _:
                return lambda _: self.seconds


def parse_think(text: str) -> Think:
    """Read ``--think-time``; nothing is no pause.

    Raises:
        HarnessError: it is none of the forms, or a number in it is out of its range.
    """
    if not text:
        return Think()
    if found := _SCALED.fullmatch(text):
        return Think(kind="recorded", scale=_number(text, found["scale"] or "1", MOST_S))
    if found := _DRAWN.fullmatch(text):
        median = _number(text, found["median"], MOST_S)
        sigma = _number(text, found["sigma"], MOST_SIGMA)
        if median:
            return Think(kind="lognormal", seconds=median, sigma=sigma)
    return Think(kind="fixed", seconds=_number(text, text, MOST_S))


def _number(text: str, number: str, most: float) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise HarnessError(
            f"--think-time {text}: use recorded, recorded*0.1, lognormal:MEDIAN_S,SIGMA with a "
            f"median above 0 and sigma up to {MOST_SIGMA:g}, or seconds up to {MOST_S:g}"
        )
    return value
