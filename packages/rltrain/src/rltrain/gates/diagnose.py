# SPDX-License-Identifier: Apache-2.0
"""Which of the usual mistakes a difference is.

Contract: every answer is an experiment on the same tokens, named with what it left of the
difference; the first that explains it is given. One that explains nearly all of it is a cause under
the limit too: a policy that hardly ever doubts hides a mistake in its mean. Only over the limit,
and where nothing explains it, is arithmetic or the policy itself blamed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from envkit.agent.tokens.vocabulary import Vocabulary
from rltrain.gates.causes import Cause
from rltrain.gates.figures import Figures
from rltrain.gates.taken import Compared, Doubles, Row, of_all

SHIFTS: Final = (-1, 1, -2, 2)
COOLEST: Final = 0.2
WARMEST: Final = 3.0
FITTED: Final = 8_000
"""Tokens, of all kinds, of the rows that a temperature is looked for on."""
PROVEN: Final = 20_000
"""Those that what was found is tried on."""
STEPS: Final = 18
"""Of the golden section: they leave 0.05 % of the temperature open."""
OTHER: Final = 1.02
"""Two temperatures within this factor are one."""
PARTS: Final = 0.3
"""From the first token that is off by so many nats a turn no longer agrees,"""
OFF: Final = 1.0
"""if one of its tokens is off by so many: arithmetic hardly ever makes one so."""
WHOLE: Final = 0.9
"""Share of turns that says: everywhere."""
SUSPECT: Final = 30.0
"""A mean under the limit divided by this is not worth the look for a temperature."""
EXPLAINED: Final = 5.0
"""By how much an explanation has to shrink the mean."""

type Rescore = Callable[[Sequence[Row], float], list[Compared]]
"""Scores rows at another temperature."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Case:
    """What is to be explained."""

    rows: Sequence[Compared]
    figures: Figures
    limit: float
    words: Vocabulary
    rescore: Rescore

    def explains(self, before: float, left: float) -> bool:
        """Whether an experiment that leaves so much of a mean shows what is wrong."""
        return left <= self.limit and left * EXPLAINED <= before


def diagnose(case: Case) -> Cause | None:
    """The cause; None where the difference is under the limit and nothing explains it."""
    mistakes = (try_(case) for try_ in (_shifted, _retokenised, _warmed))
    if found := next((each for each in mistakes if each), None):
        return found
    if case.figures.mean <= case.limit:
        return None
    return _numerical(case) or _other_policy(case)


def not_finite(rows: Sequence[Compared]) -> Cause | None:
    """Where the trainer itself makes no numbers."""
    _, trainer = of_all(rows)
    odd = int((~np.isfinite(trainer)).sum())
    if not odd:
        return None
    return Cause(
        code="numerical",
        says=f"the trainer's own log-probs are not finite at {odd:,} tokens",
        todo="score in --dtype float32; if it stays, the checkpoint is damaged",
    )


# --- a mask that is shifted -----------------------------------------------------------------------


def _shifted(case: Case) -> Cause | None:
    left = {shift: _mean_moved(case.rows, shift) for shift in SHIFTS}
    best = min(SHIFTS, key=lambda shift: left[shift])
    if not case.explains(case.figures.mean, left[best]):
        return None
    where = "later" if best > 0 else "earlier"
    return Cause(
        code="shifted",
        says=f"recorded log-probs stand {_tokens(abs(best))} {where} than the tokens they are of",
        evidence=(
            f"mean difference {case.figures.mean:.3g} as recorded, {left[best]:.3g} moved by "
            f"{-best:+d}",
            "moved by others: "
            + ", ".join(f"{-each:+d} {left[each]:.3g}" for each in SHIFTS if each != best),
        ),
        todo="look at how mask and log-probs are laid over ids: a label's log-prob belongs to the "
        "label, not to the state before it",
    )


def _mean_moved(rows: Sequence[Compared], shift: int) -> float:
    """Mean difference where log-probs are taken to be of the token ``shift`` places before, within
    each turn."""
    total, count = 0.0, 0
    for each in rows:
        here = each.row.places
        there = here - shift
        inside = (there >= 0) & (there < len(each.trainer))
        here, there = here[inside], there[inside]
        same = each.row.sample.mask[there] & (each.row.turn[there] == each.row.turn[here])
        size = np.abs(each.trainer[there[same]] - each.row.sample.logprobs[here[same]])
        total, count = total + float(size.sum()), count + len(size)
    return total / count if count else math.inf


def _tokens(count: int) -> str:
    return "one token" if count == 1 else f"{count} tokens"


# --- a wrong temperature --------------------------------------------------------------------------


def _warmed(case: Case) -> Cause | None:
    if case.figures.mean <= case.limit / SUSPECT:
        return None
    recorded = _commonest(case.rows)
    rows = [each for each in case.rows if each.row.sample.temperature == recorded]

    def mean(rows: Sequence[Row], temperature: float) -> float:
        rollout, trainer = of_all(case.rescore(rows, temperature))
        return float(np.abs(trainer - rollout).mean())

    few, many = _first(sorted(rows, key=_tells), FITTED), _evenly(rows, PROVEN)
    found = _golden(lambda temperature: mean(few, temperature))
    if 1 / OTHER < found / recorded < OTHER:
        return None
    before, left = mean(many, recorded), mean(many, found)
    if not case.explains(before, left):
        return None
    return Cause(
        code="temperature",
        says=f"the engine's log-probs are of temperature {found:.3g}, recorded as {recorded:g}",
        evidence=(f"mean difference {before:.3g} at {recorded:g}, {left:.3g} at {found:.3g}",),
        todo="compare what the engine was asked for with what the rows say, and whether it gives "
        "raw log-probs (--logprobs-mode processed_logprobs)",
    )


def _commonest(rows: Sequence[Compared]) -> float:
    counts = Counter[float]()
    for each in rows:
        counts[each.row.sample.temperature] += each.row.sample.trained
    return counts.most_common(1)[0][0]


def _tells(each: Compared) -> float:
    """Lower where a token of the row, whatever it is of, tells more of a difference."""
    return -float(np.nansum(np.abs(each.difference))) / len(each.row.sample)


def _first(rows: Sequence[Compared], tokens: int) -> list[Row]:
    """So many tokens of rows, whatever they are of, and at least one row."""
    ends = np.cumsum([len(each.row.sample) for each in rows])
    return [each.row for each in rows[: max(1, int(np.searchsorted(ends, tokens)))]]


def _evenly(rows: Sequence[Compared], tokens: int) -> list[Row]:
    """The same, evenly over all."""
    whole = sum(len(each.row.sample) for each in rows)
    return [each.row for each in rows[:: max(1, -(-whole // tokens))]]


def _golden(cost: Callable[[float], float]) -> float:
    """The temperature of the least cost, by golden section in its logarithm."""
    ratio = (math.sqrt(5) - 1) / 2
    low, high = math.log(COOLEST), math.log(WARMEST)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    of_left, of_right = cost(math.exp(left)), cost(math.exp(right))
    for _ in range(STEPS):
        if of_left < of_right:
            high, right, of_right = right, left, of_left
            left = high - ratio * (high - low)
            of_left = cost(math.exp(left))
        else:
            low, left, of_left = left, right, of_right
            right = low + ratio * (high - low)
            of_right = cost(math.exp(right))
    return math.exp((low + high) / 2)


# --- text that was tokenised again ----------------------------------------------------------------


def _retokenised(case: Case) -> Cause | None:
    """Turns agree up to a place and not behind it, and no turn is anything but what its text is
    tokenised to."""
    agreeing, behind, touched = _split(case)
    if not len(agreeing) or not len(behind):
        return None
    if agreeing.mean() > case.limit or behind.mean() < EXPLAINED * agreeing.mean():
        return None
    turns = [ids for each in case.rows for ids in _turns(each.row)]
    if any(case.words.encode_whole(case.words.decode(ids)) != ids for ids in turns):
        return None
    return Cause(
        code="retokenised",
        says="the ids of turns are not those that were sampled: their text was tokenised again",
        evidence=(
            f"{touched:,} of {len(case.rows):,} rows agree up to a place in a turn (mean "
            f"{agreeing.mean():.3g} over {len(agreeing):,} tokens) and not in the rest of it (mean "
            f"{behind.mean():.3g} over {len(behind):,})",
            f"decoded and encoded, each of all {len(turns):,} turns gives back its very ids, as "
            "sampled ones do not always",
        ),
        todo="store the ids that the engine returned, and never encode text again",
    )


def _split(case: Case) -> tuple[Doubles, Doubles, int]:
    """Sizes before the first token of each row that parts, and behind it in its turn; how many rows
    have one."""
    agreeing, behind = list[Doubles](), list[Doubles]()
    for each in case.rows:
        here = each.row.places
        size = np.abs(each.difference[here])
        first = int(np.argmax(size > PARTS))
        rest = size[first:][each.row.turn[here[first:]] == each.row.turn[here[first]]]
        if rest.max() > OFF:
            agreeing.append(size[:first])
            behind.append(rest[1:])
        else:
            agreeing.append(size)
    return _joined(agreeing), _joined(behind), len(behind)


def _joined(parts: Sequence[Doubles]) -> Doubles:
    return np.concatenate([np.empty(0), *parts])


def _turns(row: Row) -> Iterator[list[int]]:
    for _, places in row.turns():
        yield row.sample.token_ids[places].tolist()


# --- what is left ---------------------------------------------------------------------------------


def _numerical(case: Case) -> Cause | None:
    share, turns = _turns_off(case)
    if share >= WHOLE or case.figures.p50 > case.limit / 10:
        return None
    rollout, trainer = of_all(case.rows)
    size = np.sort(np.abs(trainer - rollout))[::-1]
    top = max(1, len(size) // 100)
    return Cause(
        code="numerical",
        says="a few tokens make the difference: arithmetic, not another policy",
        evidence=(
            f"median {case.figures.p50:.3g}; the worst {top:,} tokens (1 %) are "
            f"{100 * size[:top].sum() / size.sum():.0f} % of it",
            f"{100 * share:.0f} % of {turns:,} turns are over the limit",
        ),
        todo="compare dtype and kernels of engine and trainer: serve in float32, eager, without "
        "quantisation, or score with --dtype bfloat16",
    )


def _other_policy(case: Case) -> Cause:
    share, turns = _turns_off(case)
    return Cause(
        code="other_policy",
        says="this is not the policy that sampled",
        evidence=(
            f"{100 * share:.0f} % of {turns:,} turns are over the limit, median "
            f"{case.figures.p50:.3g}",
            "neither a shift by 1 or 2 nor a temperature of 0.2 to 3 brings it under the limit",
        ),
        todo="look at the weights after a sync (a canary), at dtype and quantisation of the "
        "engine, and at whether the prompt's ids are those it was sent",
    )


def _turns_off(case: Case) -> tuple[float, int]:
    """Share of the turns whose mean is over the limit, and how many there are."""
    means: list[float] = []
    for each in case.rows:
        size = np.abs(each.difference)
        starts = [0, *np.flatnonzero(np.diff(each.row.turn)) + 1, len(size)]
        for start, stop in pairwise(starts):
            if (mine := size[start:stop][each.row.sample.mask[start:stop]]).size:
                means.append(float(mine.mean()))
    return sum(mean > case.limit for mean in means) / len(means), len(means)
