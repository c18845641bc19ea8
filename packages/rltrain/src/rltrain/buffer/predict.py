# SPDX-License-Identifier: Apache-2.0
"""When an attempt that is begun now will have ended, and when a step at a bound will be taken.

Contract: reckoned from what the book holds of the past, so the same past predicts the same. What
nothing is known of is predicted to take no time: the first attempts are given their chance.
"""

from __future__ import annotations

from rltrain.buffer.book import Book, Group
from rltrain.buffer.types import FEW

KEPT = 0.8
"""Of what a step was expected to take, beside the newest one."""


def end_s(book: Book, group: Group) -> float:
    """When an attempt of a group would end: by the mean length of its others, else of all, and the
    seconds that a token took."""
    every = book.ledger
    if not every.tokens.total:
        return book.now_s
    tokens = [each.tokens for each in group.valid]
    mean = sum(tokens) / len(tokens) if len(tokens) >= FEW else every.tokens.mean or 0.0
    return book.now_s + mean * every.seconds.total / every.tokens.total


def bound_s(book: Book, group: Group) -> float:
    """When the last batch that may take a group will be taken."""
    left = book.bound(group) - book.next_version
    began = book.took_s + book.step_s if book.training else book.now_s
    return max(book.now_s, began) + left * book.step_s


def stepped(book: Book) -> None:
    """A batch is taken: learn how long that was after the one before it."""
    if book.took_s >= 0:
        newest = book.now_s - book.took_s
        book.step_s = KEPT * book.step_s + (1 - KEPT) * newest if book.step_s else newest
    book.took_s = book.now_s
