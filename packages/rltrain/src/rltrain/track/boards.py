# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Where the numbers of a step are shown beside ``metrics.jsonl``: TensorBoard and W&B.

Contract: a board is a view. One that is not installed, or that fails, says so in one line and the
run goes on without it. TensorBoard's events lie in ``tensorboard/`` of the run's directory. W&B is
used only where it is installed and the user has set WANDB_MODE or WANDB_PROJECT; it is offline
unless WANDB_MODE says otherwise.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol, SupportsFloat

EVENTS: Final = "tensorboard"
"""The directory of TensorBoard's events in that of a run."""
NO_TENSORBOARD: Final = (
    "tensorboard is not installed, so no events are written; pip install tensorboard"
)

type Numbers = Mapping[str, SupportsFloat | None]


class Board(Protocol):
    """Takes the numbers of steps."""

    def log(self, step: int, numbers: Numbers) -> None:
        """Show a step's numbers; what is None or not finite is left out."""
        ...

    def close(self) -> None:
        """Nothing comes any more."""
        ...


class TensorBoard:
    """Events as TensorBoard reads them.

    ``after`` is the step that a resumed run goes on from: what is there of later ones is not shown.
    TensorBoard orders files by the second they begin in, so a run is resumed in a later one.
    """

    def __init__(self, directory: Path, after: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = None if after is None else after + 1
        self._writer = SummaryWriter(str(directory), purge_step=purge)

    def log(self, step: int, numbers: Numbers) -> None:
        """A scalar a number, on the disk when this returns."""
        for name, value in _measured(numbers):
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """End the file of events."""
        self._writer.close()


class Wandb:
    """A run of W&B; one that is resumed is another in the same group, for steps only rise there."""

    def __init__(self, run: Path, settings: Mapping[str, Any], after: int | None = None) -> None:
        run = run.resolve()
        self._run = importlib.import_module("wandb").init(
            project=os.environ.get("WANDB_PROJECT", "rltrain"),
            mode=os.environ.get("WANDB_MODE", "offline"),
            dir=str(run),
            group=run.name,
            name=run.name if after is None else f"{run.name} after step {after}",
            config=dict(settings),
        )

    def log(self, step: int, numbers: Numbers) -> None:
        """One row of its history."""
        self._run.log(dict(_measured(numbers)), step=step)

    def close(self) -> None:
        """End the run there."""
        self._run.finish()


class Boards:
    """Several boards as one; one that fails is told of once and left out from then on."""

    def __init__(self, boards: Sequence[Board], told: Callable[[str], None]) -> None:
        self._boards = list(boards)
        self._told = told

    def log(self, step: int, numbers: Numbers) -> None:
        """Show a step's numbers on each."""
        for board in list(self._boards):
            if not _tried(lambda board=board: board.log(step, numbers), self._told, _name(board)):
                self._boards.remove(board)

    def close(self) -> None:
        """End each of them."""
        while self._boards:
            board = self._boards.pop()
            _tried(board.close, self._told, _name(board))


def open_boards(
    run: Path,
    told: Callable[[str], None],
    settings: Mapping[str, Any] | None = None,
    after: int | None = None,
) -> Boards:
    """The boards that this machine and its user have.

    ``told`` takes a line for a person, ``settings`` is what W&B shows of the run, ``after`` the
    step that a resumed run goes on from.
    """
    boards: list[Board] = []
    if find_spec("tensorboard") is None:
        told(NO_TENSORBOARD)
    else:
        _tried(lambda: boards.append(TensorBoard(run / EVENTS, after)), told, "TensorBoard")
    if _wants_wandb():
        _tried(lambda: boards.append(Wandb(run, settings or {}, after)), told, "Wandb")
    return Boards(boards, told)


def _wants_wandb() -> bool:
    """Whether it is set up; a directory that merely has its name is no module."""
    spec = find_spec("wandb")
    asked = "WANDB_MODE" in os.environ or "WANDB_PROJECT" in os.environ
    return asked and spec is not None and spec.origin is not None


def _tried(action: Callable[[], object], told: Callable[[str], None], name: str) -> bool:
    """Whether a foreign library did it; a failure of its own must not end a run."""
    try:
        action()
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        told(f"{name} fails and is left out: {said[:200]}")
        return False
    return True


def _name(board: Board) -> str:
    return type(board).__name__


def _measured(numbers: Numbers) -> Iterator[tuple[str, float]]:
    for name, value in numbers.items():
        if value is not None and math.isfinite(number := float(value)):
            yield name, number
