# SPDX-License-Identifier: Apache-2.0
"""What a scheduler knows: groups, the attempts at their samples, versions, and what was lost.

Contract: every attempt that was given a slot is under way, in the buffer, in the step that is being
taken, trained on, or lost for a reason, and in one of them only; ``Ledger`` counts them. The whole
is plain data, and nothing in here decides anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from rltrain.buffer.types import Begun, Binds, Lost, Outcome, SampleId, Wait

type Phase = Literal["waiting", "running", "valid", "void"]


@dataclass(slots=True, kw_only=True)
class Member:
    """A place of a group and the attempt that is in it."""

    place: int
    attempt: int = 0
    begun: Begun = "first"
    retried: int = 0
    refilled: int = 0
    phase: Phase = "waiting"
    version: int = -1
    """The lowest that sampled it; -1 before it is started."""
    heard: bool = False
    """``version`` was told, not supposed."""
    began_s: float = 0.0
    tokens: int = 0
    reward: float = 0.0


@dataclass(slots=True, kw_only=True)
class Group:
    """A prompt that is begun."""

    name: str
    number: int
    """In the order in which they were begun."""
    difficulty: float | None
    members: list[Member]
    oldest: int = -1
    """The lowest version that sampled it; -1 where no attempt is under way or valid."""
    left: int
    """Places that are waiting or under way."""
    short: Lost | None = None
    """Why the last of its empty places is empty."""

    def sample(self, member: Member) -> SampleId:
        """Which attempt is in a place."""
        return SampleId(group=self.name, place=member.place, attempt=member.attempt)

    @property
    def valid(self) -> list[Member]:
        """Those with a reward that counts."""
        return [each for each in self.members if each.phase == "valid"]

    def reckon(self) -> None:
        """Find ``oldest`` anew."""
        versions = [m.version for m in self.members if m.phase in ("running", "valid")]
        self.oldest = min(versions, default=-1)


@dataclass(slots=True, kw_only=True)
class Ending:
    """An attempt that was given up and has not ended yet."""

    group: str
    place: int
    attempt: int
    reason: Lost


@dataclass(slots=True, kw_only=True)
class Prompt:
    """One that is not begun."""

    name: str
    difficulty: float | None


@dataclass(slots=True, kw_only=True)
class Sum:
    """For a mean."""

    count: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        """One more."""
        self.count += 1
        self.total += value

    @property
    def mean(self) -> float | None:
        """None of nothing."""
        return self.total / self.count if self.count else None


@dataclass(slots=True, kw_only=True)
class Ledger:
    """What became of attempts, tokens, groups and seconds."""

    started: int = 0
    trained: int = 0
    lost: dict[Lost, int] = field(default_factory=dict[Lost, int])
    tokens_trained: int = 0
    tokens_lost: dict[Lost, int] = field(default_factory=dict[Lost, int])
    outcomes: dict[Outcome, int] = field(default_factory=dict[Outcome, int])
    groups_trained: int = 0
    groups_dropped: dict[Lost, int] = field(default_factory=dict[Lost, int])
    groups_short: int = 0
    bound_s: dict[Binds, float] = field(default_factory=dict[Binds, float])
    """Seconds in which each ceiling bound."""
    idle_slot_s: float = 0.0
    waited_s: float = 0.0
    """By the trainer, for groups at their bound."""
    tokens: Sum = field(default_factory=Sum)
    """Of valid samples that ended."""
    reward: Sum = field(default_factory=Sum)
    difficulty: Sum = field(default_factory=Sum)
    """Of prompts that were offered."""
    seconds: Sum = field(default_factory=Sum)
    """Of attempts that ended valid."""

    def lose(self, reason: Lost, tokens: int) -> None:
        """An attempt is over and not trained on."""
        self.lost[reason] = self.lost.get(reason, 0) + 1
        self.tokens_lost[reason] = self.tokens_lost.get(reason, 0) + tokens


@dataclass(slots=True, kw_only=True)
class Book:
    """All of it. ``prompts`` and ``samples`` are of a step."""

    prompts: int
    samples: int
    slots: int
    staleness: int
    now_s: float = 0.0
    version: int = 0
    """The trainer's."""
    synced: int = 0
    """What every engine holds at least."""
    free: bool = False
    """The trainer waits for a batch."""
    exhausted: bool = False
    offered: deque[Prompt] = field(default_factory=deque[Prompt])
    groups: dict[str, Group] = field(default_factory=dict[str, Group])
    """Open ones, in the order in which they were begun."""
    finished: list[str] = field(default_factory=list[str])
    """Those of them that a step could be taken on, in the order in which they came to that."""
    training: list[Group] = field(default_factory=list[Group])
    queue: deque[tuple[str, int]] = field(default_factory=deque[tuple[str, int]])
    """Places that wait for a slot; one that does so no more is passed over."""
    ending: list[Ending] = field(default_factory=list[Ending])
    used: int = 0
    """Slots."""
    admitted: int = 0
    begun: int = 0
    """Groups that were begun, less dropped ones."""
    held_s: float = -1.0
    """Since when the trainer waits; -1: it does not."""
    took_s: float = -1.0
    """When the last batch was taken; -1: none was."""
    step_s: float = 0.0
    """Between batches, lately."""
    said: Wait | None = None
    """To the trainer, last; None where it did not wait."""
    ledger: Ledger = field(default_factory=Ledger)

    names: set[str] = field(default_factory=set[str])
    """Of prompts that are not begun."""

    def knows(self, name: str) -> bool:
        """Whether attempts of that name could be taken for others."""
        return (
            name in self.groups
            or name in self.names
            or any(each.name == name for each in self.training)
            or any(each.group == name for each in self.ending)
        )

    @property
    def next_version(self) -> int:
        """From which the next batch is stepped."""
        return self.version + bool(self.training)

    def bound(self, group: Group) -> int:
        """The last version that may be stepped from on a group; of one that no attempt is in, as if
        it were started now."""
        return (self.synced if group.oldest < 0 else group.oldest) + self.staleness

    def untrain(self) -> None:
        """Put the groups of a step that was not finished back, before all others."""
        back = {each.name: each for each in self.training} | self.groups
        self.groups = dict(sorted(back.items(), key=lambda each: each[1].number))
        self.finished = [each.name for each in self.training] + self.finished
        self.training = []

    def unfinished(self) -> Iterator[Group]:
        """Open groups that no step can be taken on yet."""
        return (each for each in self.groups.values() if each.left)

    @property
    def buffered(self) -> int:
        """Samples that wait for the trainer, or for others of their group."""
        return sum(len(each.valid) for each in self.groups.values())
