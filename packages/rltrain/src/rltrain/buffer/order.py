# SPDX-License-Identifier: Apache-2.0
"""How many groups may be begun, and which of them the next step takes.

Contract: pure functions of a book. ``Deadline`` keeps every group within its bound whatever ends
when: with N(d) open groups whose bound is d or before and B groups a step, N(d) never exceeds what
the batches up to d can take, so a group is begun only where that stays true, and a batch is taken
only if it stays true after it. The others are what is published, for comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from types import MappingProxyType
from typing import Final, Literal, Protocol

from rltrain.buffer.book import Book, Group
from rltrain.buffer.config import OrderName


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Groups for a step."""

    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """No step can be taken before one of these is finished."""

    groups: tuple[Group, ...]
    at_bound: bool = False
    """No later batch could take them; else any group would do."""


class Order(Protocol):
    """What a scheduler asks."""

    @property
    def stale(self) -> Literal["kept", "sample", "group"]:
        """What is given up when no step may be taken on it any more."""
        ...

    def room(self, book: Book) -> int:
        """Groups that may be begun now."""
        ...

    def pick(self, book: Book, count: int) -> Pick | Held:
        """So many groups, for a step from ``book.version``."""
        ...


class Deadline:
    """What is nearest to its bound first; the trainer waits only for what no later batch can take.

    Among finished groups the oldest go first: they are what an order of completion leaves behind.
    """

    stale: Literal["kept", "sample", "group"] = "sample"

    def room(self, book: Book) -> int:
        last = book.synced + book.staleness
        bounds = Counter(map(book.bound, book.groups.values()))
        bounds[last] += 0
        rooms = [
            book.prompts * (bound - book.next_version + 1) - until
            for bound, until in _until(bounds).items()
            if bound >= last
        ]
        return max(0, min(rooms))

    def pick(self, book: Book, count: int) -> Pick | Held:
        every = _until(Counter(map(book.bound, book.groups.values())))
        ready = Counter(book.bound(book.groups[name]) for name in book.finished)
        have = 0
        for bound, until in every.items():
            have += ready[bound]
            later = book.prompts * (bound - book.version)
            if min(have, count) < min(until - later, count):
                late = tuple(g for g in book.unfinished() if book.bound(g) <= bound)
                return Held(groups=late, at_bound=True)
        if len(book.finished) < count:
            return Held(groups=tuple(book.unfinished()))
        first = sorted(book.finished, key=lambda name: _age(book, name))
        return Pick(groups=tuple(first[:count]))


class Completion:
    """As groups are finished, behind a count of those begun: S + 1 batches beyond the engines.

    The published gate. It bounds a mean and no group: what is slow is left behind.
    """

    stale: Literal["kept", "sample", "group"] = "kept"

    def room(self, book: Book) -> int:
        return max(0, (book.staleness + book.synced + 1) * book.prompts - book.begun)

    def pick(self, book: Book, count: int) -> Pick | Held:
        if len(book.finished) < count:
            return Held(groups=tuple(book.unfinished()))
        return Pick(groups=tuple(book.finished[:count]))


class DropStale(Completion):
    """The same, and a group past its bound is given up with all that was sampled of it."""

    stale: Literal["kept", "sample", "group"] = "group"


class Strict(Completion):
    """As groups were begun: the trainer waits for the oldest, whatever else is finished."""

    def pick(self, book: Book, count: int) -> Pick | Held:
        first = tuple(islice(book.groups.values(), count))
        late = tuple(each for each in first if each.left)
        if late or len(first) < count:
            return Held(groups=late, at_bound=bool(late))
        return Pick(groups=tuple(each.name for each in first))


ORDERS: Final[Mapping[OrderName, Order]] = MappingProxyType(
    {
        "deadline": Deadline(),
        "completion": Completion(),
        "drop_stale": DropStale(),
        "strict": Strict(),
    }
)


def _until(bounds: Counter[int]) -> dict[int, int]:
    """How many have each bound or one before it."""
    ordered = sorted(bounds)
    return dict(zip(ordered, accumulate(bounds[each] for each in ordered), strict=True))


def _age(book: Book, name: str) -> tuple[int, int]:
    group = book.groups[name]
    return book.bound(group), group.number
