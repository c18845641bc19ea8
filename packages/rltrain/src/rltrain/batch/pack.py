# SPDX-License-Identifier: Apache-2.0
"""Samples into micro-batches under a token cap, balanced over ranks by what they cost.

Ranks go in lock step: a round, one micro-batch a rank, takes as long as its most costly one. So
what counts is the sum over rounds of the largest cost, and likes belong side by side.

Contract: every sample is in one micro-batch, none of them has more tokens than the cap, and every
rank has as many micro-batches as any other. The plan depends on lengths, cap and ranks alone.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rltrain.batch.cost import Cost

SWAPS: Final = 60
"""Exchanges inside a round at most."""
EVEN: Final = 0.002
"""A round whose costs differ by no more than this share is left as it is."""
GAIN: Final = 0.01
"""Of the gap between two micro-batches: an exchange that closes less is not made."""


class TooLong(ValueError):
    """A sample has more tokens than a micro-batch may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which samples go together, and where."""

    ranks: tuple[tuple[tuple[int, ...], ...], ...]
    """By rank, in the order of the rounds: indices of the samples of a micro-batch."""
    makespan: float
    """Sum over rounds of the largest cost."""
    bound: float
    """No plan takes less: a rank's share, or the most costly sample."""

    @property
    def rounds(self) -> int:
        """How many micro-batches every rank has."""
        return len(self.ranks[0])


type _Bin = list[int]


def pack(lengths: Sequence[int], cost: Cost, *, cap: int, ranks: int) -> Plan:
    """A plan for samples of these lengths, in tokens, at least one for each rank.

    Raises:
        TooLong: a sample does not fit; the message names it.
        ValueError: there are fewer samples than ranks.
    """
    _check(lengths, cap, ranks)
    costs = [cost.of(length) for length in lengths]
    work = _Work(lengths, costs, cap)
    drafts = (draft(work, ranks) for draft in (_decreasing, _spread))
    rounds = min((_even(work, draft, ranks) for draft in drafts), key=work.makespan)
    return Plan(
        ranks=_assigned(work, rounds, ranks),
        makespan=work.makespan(rounds),
        bound=max(sum(costs) / ranks, max(costs)),
    )


def _check(lengths: Sequence[int], cap: int, ranks: int) -> None:
    if len(lengths) < ranks:
        raise ValueError(f"{len(lengths)} samples cannot keep {ranks} ranks busy")
    longest = max(range(len(lengths)), key=lambda each: lengths[each])
    if lengths[longest] > cap:
        raise TooLong(f"sample {longest} has {lengths[longest]} tokens, a micro-batch {cap}")


@dataclass(frozen=True, slots=True)
class _Work:
    lengths: Sequence[int]
    costs: Sequence[float]
    cap: int

    def cost(self, bin_: _Bin) -> float:
        return sum(self.costs[each] for each in bin_)

    def tokens(self, bin_: _Bin) -> int:
        return sum(self.lengths[each] for each in bin_)

    def makespan(self, rounds: Sequence[Sequence[_Bin]]) -> float:
        return sum(max(map(self.cost, each)) for each in rounds)


# --- which samples may go together ----------------------------------------------------------------


def _decreasing(work: _Work, ranks: int) -> list[_Bin]:
    """Longest first, each where it leaves the least room."""
    del ranks
    return _best_fit(work, sorted(range(len(work.lengths)), key=lambda each: -work.lengths[each]))


def _spread(work: _Work, ranks: int) -> list[_Bin]:
    """The same, where every rank has about as many tokens first."""
    shares: list[list[int]] = [[] for _ in range(ranks)]
    load = [(0, rank) for rank in range(ranks)]
    for each in sorted(range(len(work.lengths)), key=lambda each: -work.lengths[each]):
        tokens, rank = load.pop(0)
        shares[rank].append(each)
        insort(load, (tokens + work.lengths[each], rank))
    return [bin_ for share in shares for bin_ in _best_fit(work, share)]


def _best_fit(work: _Work, order: Sequence[int]) -> list[_Bin]:
    bins: list[_Bin] = []
    rooms: list[tuple[int, int]] = []
    for each in order:
        length = work.lengths[each]
        place = bisect_left(rooms, (length, -1))
        if place == len(rooms):
            rooms_left, number = work.cap, len(bins)
            bins.append([])
        else:
            rooms_left, number = rooms.pop(place)
        bins[number].append(each)
        insort(rooms, (rooms_left - length, number))
    return bins


# --- which go side by side ------------------------------------------------------------------------


def _even(work: _Work, bins: list[_Bin], ranks: int) -> list[list[_Bin]]:
    """Rounds of about equal costs."""
    bins = _divisible(work, bins, ranks)
    bins.sort(key=work.cost, reverse=True)
    rounds = [bins[start : start + ranks] for start in range(0, len(bins), ranks)]
    for each in rounds:
        _exchange(work, each)
    return rounds


def _divisible(work: _Work, bins: list[_Bin], ranks: int) -> list[_Bin]:
    """As many as every rank can have equally many of: the costliest are halved."""
    missing = -len(bins) % ranks
    bins = sorted(bins, key=work.cost)
    halves: list[_Bin] = []
    while missing:
        place = next(n for n in reversed(range(len(bins))) if len(bins[n]) > 1)
        low, high = _halved(work, bins.pop(place))
        insort(bins, low, key=work.cost)
        insort(bins, high, key=work.cost)
        missing -= 1
    return bins + halves


def _halved(work: _Work, bin_: _Bin) -> tuple[_Bin, _Bin]:
    halves: tuple[_Bin, _Bin] = ([], [])
    for each in sorted(bin_, key=lambda each: -work.costs[each]):
        min(halves, key=work.cost).append(each)
    return halves


def _exchange(work: _Work, round_: list[_Bin]) -> None:
    """Move or swap samples between the costliest and the cheapest micro-batch of a round."""
    costs = [work.cost(each) for each in round_]
    tokens = [work.tokens(each) for each in round_]
    for _ in range(SWAPS):
        high = max(range(len(costs)), key=costs.__getitem__)
        low = min(range(len(costs)), key=costs.__getitem__)
        gap = costs[high] - costs[low]
        if gap <= EVEN * costs[high]:
            return
        found = _best(work, round_[high], round_[low], gap, tokens[high], tokens[low])
        if found is None:
            return
        out, back = found
        round_[high].remove(out)
        round_[low].append(out)
        if back is not None:
            round_[low].remove(back)
            round_[high].append(back)
        for place in (high, low):
            costs[place], tokens[place] = work.cost(round_[place]), work.tokens(round_[place])


def _best(
    work: _Work, high: _Bin, low: _Bin, gap: float, tokens_high: int, tokens_low: int
) -> tuple[int, int | None] | None:
    """What to take out of the costlier and what to give back for it; None where nothing helps."""
    best, most = None, GAIN * gap
    for out in high:
        room = work.cap - tokens_low - work.lengths[out]
        gain = min(work.costs[out], gap - work.costs[out])
        if gain > most and room >= 0 and len(high) > 1:
            best, most = (out, None), gain
        for back in low:
            moved = work.costs[out] - work.costs[back]
            gain = min(moved, gap - moved)
            fits = room + work.lengths[back] >= 0
            shorter = tokens_high - work.lengths[out] + work.lengths[back] <= work.cap
            if gain > most and fits and shorter:
                best, most = (out, back), gain
    return best


# --- which rank takes which -----------------------------------------------------------------------


def _assigned(
    work: _Work, rounds: Sequence[Sequence[_Bin]], ranks: int
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """In each round the costliest to the rank that had least so far: ranks may run ahead."""
    total = [0.0] * ranks
    taken: list[list[tuple[int, ...]]] = [[] for _ in range(ranks)]
    for each in rounds:
        order = sorted(range(ranks), key=total.__getitem__)
        by_cost: Callable[[_Bin], float] = work.cost
        for bin_, rank in zip(sorted(each, key=by_cost, reverse=True), order, strict=True):
            taken[rank].append(tuple(sorted(bin_)))
            total[rank] += work.cost(bin_)
    return tuple(map(tuple, taken))
