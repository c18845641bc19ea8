# SPDX-License-Identifier: Apache-2.0
"""Of which distribution an engine's logprobs are: asked by two requests for one token.

The second is drawn at temperature 2 from the best `KEPT` tokens alone. Logprobs of what was drawn
from have half the gaps of the first request's and sum to 1 over those tokens; logprobs before
temperature and truncation are the first request's again. Anything else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from envkit.fault import OtherDistribution
from envkit.trajectory.types import LogprobsMode, Sampling

KEPT: Final = 4
WARM: Final = 2.0
NOISE: Final = 0.1
"""Share of a gap by which two runs of one engine may differ: batches are not summed in one order
(0.01 of a gap of 1 in bfloat16), and a half is far from it."""
LEAST_GAP: Final = 0.05
"""Natural logarithm; of a flatter distribution nothing can be told."""

PLAIN: Final = Sampling(top_logprobs=KEPT)
SHAPED: Final = Sampling(temperature=WARM, top_k=KEPT, top_logprobs=KEPT)

type Table = Mapping[int, float]
"""Logprobs by id, of the best tokens at one position."""


async def probe(draw: Callable[[Sampling], Awaitable[Table]]) -> LogprobsMode:
    """What ``draw``, which samples one token, shows. Raises OtherDistribution."""
    return told_apart(await draw(PLAIN), await draw(SHAPED))


def told_apart(plain: Table, shaped: Table) -> LogprobsMode:
    """The mode by two tables of the same position."""
    both = sorted(plain.keys() & shaped.keys(), key=lambda each: -plain[each])
    gap = plain[both[0]] - plain[both[-1]] if both else 0.0
    if gap < LEAST_GAP:
        raise OtherDistribution(
            "the engine's logprobs are too flat to tell which distribution they are of"
        )
    ratio = (shaped[both[0]] - shaped[both[-1]]) / gap
    if abs(ratio - 1.0) < NOISE:
        return "raw"
    whole = sum(math.exp(each) for each in shaped.values())
    if abs(ratio - 1.0 / WARM) < NOISE / WARM and abs(whole - 1.0) < NOISE / 10:
        return "processed"
    raise OtherDistribution(
        f"the engine's logprobs are of neither distribution: gaps at temperature {WARM:g} are"
        f" {ratio:.3f} of those at 1, and the best {KEPT} sum to {whole:.3f}"
    )
