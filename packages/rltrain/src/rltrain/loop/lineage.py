# SPDX-License-Identifier: Apache-2.0
"""Which weights descend from which: a run that is gone on with begins a new lineage.

Contract: a version that engines are told is never told twice for other weights, as each lineage
counts its own. What a dead lineage sampled counts as sampled by the newest of its weights that are
the ancestors of those trained now. It is on the disk before anything of its lineage is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from envkit.durable import write_durably
from rltrain.refused import Refused
from rltrain.sync.version import STEPS, WeightVersion

LINEAGES: Final = "lineages.json"
"""In a run's directory."""


class Line(BaseModel):
    """A lineage, and the weights that it began from."""

    model_config = ConfigDict(frozen=True)
    lineage: int
    parent_lineage: int | None = None
    """None of the first, which began from the policy."""
    parent_step: int = 0
    at: str
    """In UTC."""


_LINES: Final = TypeAdapter(tuple[Line, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineages:
    """Those of a run; the last one is trained now."""

    lines: tuple[Line, ...]

    @classmethod
    def read(cls, root: Path) -> Self:
        """Those so far.

        Raises:
            Refused: what is there means nothing.
        """
        file = root / LINEAGES
        if not file.is_file():
            return cls(lines=())
        try:
            return cls(lines=_LINES.validate_json(file.read_bytes()))
        except ValidationError as error:
            raise Refused(f"{file}: has no lineages in it; put the file back") from error

    def begun(self, root: Path, parent: WeightVersion | None, at: str) -> Self:
        """With one more, which is on the disk."""
        line = Line(
            lineage=len(self.lines),
            parent_lineage=parent.lineage if parent else None,
            parent_step=parent.step if parent else 0,
            at=at,
        )
        lines = (*self.lines, line)
        write_durably(root / LINEAGES, _LINES.dump_json(lines, indent=1))
        return type(self)(lines=lines)

    @property
    def now(self) -> int:
        """The one that is trained."""
        return len(self.lines) - 1

    def version(self, step: int) -> WeightVersion:
        """Of the weights after so many steps, in the lineage that is trained."""
        return WeightVersion(lineage=self.now, step=step)

    def step_of(self, number: int) -> int:
        """After how many steps the weights stood that a version counts as; -1 for none known."""
        if number < 0:
            return -1
        version = WeightVersion.of(number)
        lineage, step = version.lineage, version.step
        newest = self._newest()
        while lineage not in newest:
            parent = self.lines[lineage]
            if parent.parent_lineage is None:
                return 0
            lineage, step = parent.parent_lineage, parent.parent_step
        return min(step, newest[lineage])

    def is_ancestor(self, number: int) -> bool:
        """Whether the weights of a version are those trained now, or their ancestors."""
        if number < 0:
            return False
        version = WeightVersion.of(number)
        return version.step <= self._newest().get(version.lineage, -1)

    def _newest(self) -> Mapping[int, int]:
        """By lineage, the last of its steps that those trained now descend from."""
        return dict(self._up())

    def _up(self) -> Iterator[tuple[int, int]]:
        lineage, step = self.now, STEPS - 1
        while True:
            yield lineage, step
            line = self.lines[lineage]
            if line.parent_lineage is None:
                return
            lineage, step = line.parent_lineage, line.parent_step
