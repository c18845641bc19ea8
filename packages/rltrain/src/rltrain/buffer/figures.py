# SPDX-License-Identifier: Apache-2.0
"""A batch against the population, and which ceiling keeps more samples from being under way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rltrain.buffer.book import Book, Group
from rltrain.buffer.types import Against, Binds, Ceiling, Mean


def against(book: Book, groups: Sequence[Group]) -> Against:
    """What is in a batch, beside what it was taken from."""
    valid = [each for group in groups for each in group.valid]
    ledger = book.ledger
    hard = [each.difficulty for each in groups if each.difficulty is not None]
    return Against(
        tokens=Mean(batch=_mean(each.tokens for each in valid), population=ledger.tokens.mean),
        reward=Mean(batch=_mean(each.reward for each in valid), population=ledger.reward.mean),
        difficulty=Mean(batch=_mean(hard), population=ledger.difficulty.mean),
        unfinished=book.used - len(book.ending),
    )


def ceiling(book: Book) -> Ceiling:
    """As it is now."""
    whole = (book.staleness + 1) * book.prompts * book.samples
    training = len(book.training) * book.samples
    return Ceiling(
        binds=binds(book),
        running=book.used,
        slots=book.slots,
        staleness=max(0, whole - training - book.buffered),
    )


def binds(book: Book) -> Binds:
    """Slots where none is free; else staleness, unless there is nothing to begin."""
    if book.used >= book.slots:
        return "slots"
    return "staleness" if book.offered else "prompts"


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
