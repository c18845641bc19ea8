# SPDX-License-Identifier: Apache-2.0
"""Which task each prompt of a run is: a function of the tasks, the seed and the prompt's number.

Contract: every task is there once in an epoch, in an order that is drawn anew for each; so how many
prompts were offered is all there is to keep of where a run stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rltrain.refused import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A task to be sampled."""

    name: str
    """Its group's."""
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Those of a run."""

    tasks: Sequence[str]
    """Names of their directories, in one place."""
    seed: int
    epochs: int
    steps: int = 0
    """Updates, at most; 0 for as many as the epochs come to. With steps, epochs do not bind."""

    def __len__(self) -> int:
        """How many there are; with ``steps`` as many as are wanted."""
        return 2**31 if self.steps else self.epochs * len(self.tasks)

    def at(self, number: int) -> Prompt:
        """The prompt of this number, from 0."""
        epoch, place = divmod(number, len(self.tasks))
        order = sorted(self.tasks, key=lambda task: _drawn(self.seed, epoch, task))
        return Prompt(name=f"g{number:06}", task=order[place])

    def of(self, group: str) -> Prompt:
        """That of a group, by its name."""
        return self.at(int(group.removeprefix("g")))


def task_names(directory: Path) -> tuple[str, ...]:
    """Of the tasks in a directory.

    Raises:
        Refused: there are none.
    """
    found = sorted(file.parent.name for file in directory.glob("*/task.toml"))
    if not found:
        raise Refused(f"{directory}: holds no tasks; name a directory of them, as rollout.tasks")
    return tuple(found)


def _drawn(seed: int, epoch: int, name: str) -> bytes:
    """A task's place in an epoch's order, whatever others there are."""
    return hashlib.sha256(f"{seed}/{epoch}/{name}".encode()).digest()
