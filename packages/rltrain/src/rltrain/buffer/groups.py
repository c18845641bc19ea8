# SPDX-License-Identifier: Apache-2.0
"""What becomes of groups whose attempts fault, come too late or are all over.

Contract: every place that is not filled and every group that is not trained on is a decision, with
its reason. A faulted place is tried again, then filled anew if that can end before the bound; else
the group is closed with two valid samples or more, or dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from rltrain.buffer import predict
from rltrain.buffer.book import Book, Ending, Group, Member
from rltrain.buffer.config import BufferConfig
from rltrain.buffer.order import Order
from rltrain.buffer.types import (
    FEW,
    NO_VARIANCE,
    Again,
    Begun,
    Cancel,
    CloseShort,
    Decision,
    DropGroup,
    Leave,
    Lost,
)


@dataclass(slots=True, kw_only=True)
class Groups:
    """Of a book; decisions go to ``out``."""

    config: BufferConfig
    order: Order
    book: Book
    out: list[Decision]

    def reckon(self, group: Group) -> None:
        """After anything that has changed in a group: is it late, and is it whole?"""
        book = self.book
        group.reckon()
        if self.order.stale == "sample" and book.bound(group) < book.next_version:
            self._expire(group)
        if group.name in book.groups and not group.left and group.name not in book.finished:
            self._complete(group)

    def _expire(self, group: Group) -> None:
        """Give up what no step may be taken on; only a version lower than was supposed, or more
        groups than steps because of one, brings this about."""
        book = self.book
        least = book.next_version - book.staleness
        whole = not group.left
        late = [m for m in group.members if m.phase in ("running", "valid") and m.version < least]
        for each in late:
            group.left += each.phase == "valid" and not whole
            self._void(group, each, "stale")
            if not whole:
                self.again(group, each, "stale")
        group.reckon()
        if whole and group.name in book.finished:
            book.finished.remove(group.name)

    def _void(self, group: Group, member: Member, reason: Lost) -> None:
        """Give up an attempt, wherever it is."""
        book = self.book
        if member.phase == "running":
            self.out.append(Cancel(sample=group.sample(member), reason=reason))
            book.ending.append(
                Ending(group=group.name, place=member.place, attempt=member.attempt, reason=reason)
            )
        elif member.phase == "valid":
            book.ledger.lose(reason, member.tokens)
        member.phase = "void"

    def again(self, group: Group, member: Member, after: Lost) -> None:
        """Begin a place once more, or leave it empty."""
        member.phase = "void"
        begun, why = self._chance(group, member)
        if begun is None:
            self._leave(group, member, after, why)
            return
        member.attempt += 1
        member.begun, member.phase, member.version = begun, "waiting", -1
        member.heard = False
        if begun == "retry":
            member.retried += 1
        else:
            member.refilled, member.retried = member.refilled + 1, self.config.retries
        self.book.queue.appendleft((group.name, member.place))
        self.out.append(Again(sample=group.sample(member), reason=begun, after=after))

    def _chance(self, group: Group, member: Member) -> tuple[Begun | None, str]:
        if member.retried < self.config.retries:
            return "retry", ""
        if member.refilled >= self.config.refills:
            return None, f"it was begun {member.attempt + 1} times"
        group.reckon()
        end, bound = predict.end_s(self.book, group), predict.bound_s(self.book, group)
        if end < bound:
            return "refill", ""
        return None, f"another would end at {end:.0f} s and its bound comes at {bound:.0f} s"

    def _leave(self, group: Group, member: Member, reason: Lost, why: str) -> None:
        group.short = reason
        group.left -= 1
        self.out.append(Leave(sample=group.sample(member), reason=reason, why=why))

    def _complete(self, group: Group) -> None:
        valid = group.valid
        rewards = [each.reward for each in valid]
        if len(valid) < FEW:
            self.drop(group, "few_valid")
        elif max(rewards) - min(rewards) <= NO_VARIANCE:
            self.drop(group, "no_variance")
        else:
            self.book.finished.append(group.name)
            if len(valid) < len(group.members):
                self.book.ledger.groups_short += 1
                reason = group.short or "stale"
                self.out.append(CloseShort(group=group.name, valid=len(valid), reason=reason))

    def drop(self, group: Group, reason: Lost) -> None:
        """Give up a group and every attempt in it."""
        book = self.book
        for each in group.members:
            self._void(group, each, reason)
        del book.groups[group.name]
        if group.name in book.finished:
            book.finished.remove(group.name)
        book.begun -= 1
        book.ledger.groups_dropped[reason] = book.ledger.groups_dropped.get(reason, 0) + 1
        self.out.append(DropGroup(group=group.name, reason=reason))

    def give_up(self, group: Group, member: Member) -> None:
        """Wait for an attempt no more, and leave its place empty."""
        why = f"the trainer has waited {self.config.bound_wait_s:g} s"
        self._void(group, member, "bound_wait")
        self._leave(group, member, "bound_wait", why)
        self.reckon(group)
