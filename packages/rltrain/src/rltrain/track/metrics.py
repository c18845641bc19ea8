# SPDX-License-Identifier: Apache-2.0
"""The numbers of every step of a run, as one JSON object a line: ``metrics.jsonl``.

Contract: flat names to numbers, null for what was not measured or is not finite. Steps rise, so
each is there once. A line is whole or it is the last one, which a kill may have cut; any other
damage is refused with the number of its line. What was logged before `Metrics.sync` outlives a
loss of power.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, SupportsFloat, cast

from envkit.durable import sync_directory, write_durably
from rltrain.refused import Refused

METRICS: Final = "metrics.jsonl"
"""Its name in a run's directory."""
NO_STEP: Final = -1
"""Before any step; the first may be 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step told."""

    step: int
    numbers: Mapping[str, float | None]
    """By name, ``time`` among them; None for what was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The steps of a run, in order."""

    steps: tuple[Step, ...]
    cut: int | None = None
    """The number of the line that a kill cut and that is left out."""

    @property
    def remark(self) -> str:
        """What was left out, for a person; empty where nothing was."""
        return f"line {self.cut} is cut, as a kill leaves it, and left out" if self.cut else ""


class Metrics:
    """Appends to a run's numbers; a board as those of `rltrain.track.boards` are.

    A last line that a kill has cut is taken off when it is opened.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Open it, or make it.

        Raises:
            Refused: what is there is damaged.
        """
        self._clock = clock
        self._last = _mended(path)
        self._file = path.open("ab")
        sync_directory(path.parent)

    def log(self, step: int, numbers: Mapping[str, SupportsFloat | None]) -> None:
        """Add a step, with the time; it is there after a kill from here on.

        Raises:
            ValueError: the step does not come after the last one; `cut_after` takes steps off.
        """
        if step <= self._last:
            raise ValueError(f"step {step} does not come after {self._last}, the last one logged")
        row = {"step": step, "time": self._clock(), **numbers}
        plain = {name: _plain(value) for name, value in row.items()}
        self._file.write(json.dumps(plain, allow_nan=False).encode() + b"\n")
        self._file.flush()
        self._last = step

    def sync(self) -> None:
        """Put all of it on the disk: what a checkpoint counts on."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Put all of it on the disk and let go of it; closing twice does nothing."""
        if not self._file.closed:
            self.sync()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def read_metrics(path: Path) -> History:
    """The steps in a file.

    Raises:
        Refused: there is no such file, or a line of it is damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; a run writes it at its first step") from error
    whole, tail = _whole(data)
    steps = tuple(step for step, _ in _steps(path, whole))
    return History(steps=steps, cut=whole.count(b"\n") + 1 if tail else None)


def cut_after(path: Path, step: int) -> None:
    """Keep the steps up to this one, which a resumed run goes on from; no file stays none.

    What comes after the step is not read, so damage there is no hindrance. The file is the old one
    or the new one at every moment.

    Raises:
        Refused: what is to be kept is damaged.
    """
    if not path.exists():
        return
    data = path.read_bytes()
    kept = b"".join(_up_to(path, _whole(data)[0], step))
    if kept != data:
        write_durably(path, kept)


def _up_to(path: Path, data: bytes, last: int) -> Iterator[bytes]:
    if last <= NO_STEP:
        return
    for step, line in _steps(path, data):
        if step.step <= last:
            yield line
        if step.step >= last:
            return


def _mended(path: Path) -> int:
    """Take a cut last line off; the last step, or `NO_STEP`."""
    if not path.exists():
        return NO_STEP
    history = read_metrics(path)
    last = history.steps[-1].step if history.steps else NO_STEP
    if history.cut:
        cut_after(path, last)
    return last


def _whole(data: bytes) -> tuple[bytes, bytes]:
    """The lines that were written to their end, and what follows them."""
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _steps(path: Path, data: bytes) -> Iterator[tuple[Step, bytes]]:
    """Each line's step and its bytes, checked one by one."""
    last = NO_STEP
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            step = _step(line, last)
        except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
            raise Refused(
                f"{path}, line {number}: {error}; mend it or take the file away"
            ) from error
        yield step, line + b"\n"
        last = step.step


def _step(line: bytes, last: int) -> Step:
    try:
        row: Any = json.loads(line.decode())
    except ValueError as error:
        raise ValueError("is no JSON") from error
    if not isinstance(row, dict):
        raise TypeError("is no JSON object")
    numbers = {name: _read(name, value) for name, value in cast("dict[str, Any]", row).items()}
    step = numbers.pop("step", None)
    if not isinstance(step, int):
        raise TypeError("has no whole number as its step")
    if step <= last:
        raise ValueError(f"step {step} comes after step {last}")
    return Step(step=step, numbers=numbers)


def _read(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r:.40}, neither a number nor null")
    return value


def _plain(value: SupportsFloat | None) -> float | None:
    """A number that JSON can hold; None for what is not finite."""
    if value is None or isinstance(value, int):
        return None if value is None else int(value)
    number = float(value)
    return number if math.isfinite(number) else None
