# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a trajectory or with the files that hold it.

::

    TrajectoryError           the harness's, never the model's
    ├── BrokenInvariant       a row says what cannot be: it is neither written nor believed
    ├── Damaged               bytes are not the ones that were written; names file and row
    ├── OtherSchema           a file of another major version
    ├── NoSuchRow             nothing goes by this id
    ├── SameRow               something goes by this id already
    └── StoreBusy             another process writes here
"""

from __future__ import annotations

from envkit.fault import HarnessError


class TrajectoryError(HarnessError):
    """A trajectory, or a file that holds some, is not what it must be."""


class BrokenInvariant(TrajectoryError):
    """A row that says what cannot be."""

    def __init__(self, row: str, field: str, problem: str) -> None:
        super().__init__(row, field, problem)
        self.row = row
        """Id of the trajectory."""
        self.field = field
        """Path of the field, ``episode.requests[3].finish``."""
        self.problem = problem
        """What is wrong with it."""

    def __str__(self) -> str:
        return f"trajectory {self.row!r}: {self.field}: {self.problem}"


class Damaged(TrajectoryError):
    """Bytes that are not the ones that were written."""

    def __init__(self, file: str, row: str, problem: str) -> None:
        super().__init__(file, row, problem)
        self.file = file
        """Path of the file."""
        self.row = row
        """Id of the trajectory; empty where it is the file's own frame."""
        self.problem = problem
        """What is wrong, and what that costs."""

    def __str__(self) -> str:
        row = f"trajectory {self.row!r}: " if self.row else ""
        return f"{self.file}: {row}{self.problem}"


class OtherSchema(TrajectoryError):
    """A file of a major version that this reader does not know."""

    def __init__(self, file: str, theirs: str, ours: str) -> None:
        super().__init__(file, theirs, ours)
        self.file, self.theirs, self.ours = file, theirs, ours

    def __str__(self) -> str:
        return (
            f"{self.file}: schema is {self.theirs!r}, this version reads {self.ours!r};"
            " read it with an envkit that does"
        )


class NoSuchRow(TrajectoryError):
    """Nothing in the store goes by this id."""

    def __str__(self) -> str:
        return f"no trajectory {self.args[0]!r} in {self.args[1]}"


class SameRow(TrajectoryError):
    """Something in the store goes by this id already."""

    def __str__(self) -> str:
        return f"trajectory {self.args[0]!r} is already in {self.args[1]}"


class StoreBusy(TrajectoryError):
    """Another process writes to this store."""

    def __str__(self) -> str:
        return f"{self.args[0]}: another process writes here ({self.args[1]}); wait for its end"
