# SPDX-License-Identifier: Apache-2.0
"""A scheduler that is told things in short, and what it decided, by kind."""

from __future__ import annotations

from rltrain.buffer.config import BufferConfig
from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import (
    Batch,
    Decision,
    Ended,
    Event,
    Offered,
    Outcome,
    SampleId,
    Start,
    Started,
    Synced,
    TrainerFree,
    Updated,
    Wait,
)


class Driver:
    """Says every start with the version that engines hold."""

    def __init__(
        self, config: BufferConfig, *, prompts: int = 1, samples: int = 2, slots: int = 64
    ) -> None:
        self.scheduler = Scheduler(config, prompts=prompts, samples=samples, slots=slots)
        self.now_s = 0.0
        self.engines = 0
        self.said: list[Decision] = []
        self.reward = 0.0

    def tell(self, event: Event, after_s: float = 0.0) -> list[Decision]:
        self.now_s += after_s
        decided = list(self.scheduler.on(event, self.now_s))
        for each in list(decided):
            if isinstance(each, Start):
                decided += self.tell(Started(sample=each.sample, version=self.engines))
        self.said += decided
        return decided

    def offer(self, *names: str) -> None:
        for name in names:
            self.tell(Offered(group=name))

    def end(
        self,
        group: str,
        *places: int,
        outcome: Outcome = "valid",
        after_s: float = 1.0,
        rewards: tuple[float, ...] = (),
        tokens: int = 10,
    ) -> list[Decision]:
        """End what is under way of a group: some places, or all."""
        ended = [
            each
            for each in self.scheduler.running
            if each.group == group and (not places or each.place in places)
        ]
        decided: list[Decision] = []
        for number, each in enumerate(ended):
            self.reward += 1.0
            reward = rewards[number] if rewards else self.reward
            told = Ended(
                sample=each,
                outcome=outcome,
                tokens=tokens,
                reward=None if outcome in ("fault", "cancelled") else reward,
            )
            decided += self.tell(told, after_s if number == 0 else 0.0)
        return decided

    def free(self) -> list[Decision]:
        return self.tell(TrainerFree())

    def step(self, after_s: float = 1.0) -> list[Decision]:
        """Finish the step that is being taken, and sync."""
        decided = self.tell(Updated(), after_s)
        self.engines = self.scheduler.version
        return decided + self.tell(Synced(version=self.engines)) + self.free()


def of[D](kind: type[D], decided: list[Decision]) -> list[D]:
    return [each for each in decided if isinstance(each, kind)]


def names(decided: list[Decision]) -> list[tuple[str, ...]]:
    """The groups of each batch."""
    return [tuple(group.group for group in each.groups) for each in of(Batch, decided)]


def waits(decided: list[Decision]) -> list[str]:
    return [each.reason for each in of(Wait, decided)]


def attempt(group: str, place: int = 0, number: int = 0) -> SampleId:
    return SampleId(group=group, place=place, attempt=number)
