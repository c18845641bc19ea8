# SPDX-License-Identifier: Apache-2.0
"""What happened in a run, a line an event, as it happens: ``journal.jsonl`` in its directory.

Contract: appended only, each line by one write, so that a killed process leaves at most its last
line torn; readers pass over that. A journal that cannot be written costs no trial: it says so
once. It tells what no record does, the gauges and the time, to the process that resumes the run;
which trials ended is told by their records alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

import orjson

from envkit.preflight.types import (
    Event,
    Notice,
    RunGauges,
    TrialEnded,
    TrialPhase,
    TrialStarted,
)

JOURNAL_NAME: Final = "journal.jsonl"


class Journal:
    """The journal of one process of a run."""

    def __init__(
        self,
        root: Path,
        *,
        cut_off: int = 0,
        resumable: bool = True,
        command: str = "preflight",
    ) -> None:
        """Begin; ``cut_off`` attempts were under way when processes before this one ended."""
        self.resumable = resumable
        """Whether another process may go on with the run."""
        self.command = command
        """Of envkit, by which it does."""
        self._root = root
        self._began = time.monotonic()
        self._fd = -1
        self._complaint = ""
        try:
            self._fd = _open(root / JOURNAL_NAME)
        except OSError as error:
            self._complaint = _complaint(root, error)
        self._write({"event": "began", "pid": os.getpid(), "unix": time.time(), "cut_off": cut_off})

    @property
    def root(self) -> str:
        """The directory of the run."""
        return str(self._root)

    def note(self, event: Event) -> str:
        """Add an event; a complaint where the journal cannot be written, the first time only."""
        self._write(_line(event))
        complaint, self._complaint = self._complaint, ""
        return complaint

    def close(self) -> None:
        """The process is done with its run."""
        self._write({"event": "over"})
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _write(self, line: dict[str, Any]) -> None:
        if self._fd < 0:
            return
        at = round(time.monotonic() - self._began, 3)
        try:
            os.write(self._fd, orjson.dumps({"at": at, **line}, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            self._complaint = _complaint(self._root, error)
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the journal tells of the processes that worked on a run."""

    processes: int
    seconds: float
    """From each one's beginning to the last it wrote, together."""
    cut_off: int
    """Attempts that were under way when one of them was killed and another ran again."""
    gauges: tuple[RunGauges, ...]
    events: tuple[tuple[float, Event], ...]
    """Gauges and phases, each with its seconds; a trial that left its phase enters ``""``."""
    shared_cpu_s: Mapping[str, float]
    """What each had used for all trials at its last reading, together."""


def read_journal(root: Path) -> Told:
    """Read back what was written, as far as it can be read; nothing where there is no journal."""
    processes: list[list[dict[str, Any]]] = []
    for line in _lines(root / JOURNAL_NAME):
        if line["event"] == "began":
            processes.append([])
        if processes:
            processes[-1].append(line)
    readings = [[_gauges(line) for line in p if line["event"] == "gauges"] for p in processes]
    return Told(
        processes=len(processes),
        seconds=sum(lines[-1]["at"] for lines in processes),
        cut_off=processes[-1][0].get("cut_off", 0) if processes else 0,
        gauges=tuple(gauges for read in readings for gauges in read),
        events=tuple(_events(processes)),
        shared_cpu_s=summed(*(read[-1].shared_cpu_s for read in readings if read)),
    )


def summed(*parts: Mapping[str, float]) -> dict[str, float]:
    """Numbers by name, added up."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


def _events(processes: Sequence[Sequence[dict[str, Any]]]) -> Iterator[tuple[float, Event]]:
    """What each heard, one after the other; what was under way at its end left its phase then."""
    before_s = 0.0
    for lines in processes:
        running: dict[str, None] = {}
        for line in lines:
            if line["event"] == "gauges":
                yield before_s + line["at"], _gauges(line)
            elif line["event"] == "phase":
                running[line["trial"]] = None
                phase = TrialPhase(trial_id=line["trial"], phase=line["phase"])
                yield before_s + line["at"], phase
            elif line["event"] == "ended" and line["trial"] in running:
                del running[line["trial"]]
                yield before_s + line["at"], TrialPhase(trial_id=line["trial"], phase="")
        before_s += lines[-1]["at"]
        for trial in running:
            yield before_s, TrialPhase(trial_id=trial, phase="")


def _gauges(line: dict[str, Any]) -> RunGauges:
    return RunGauges(**{name: line[name] for name in RunGauges.__slots__ if name in line})


def _open(path: Path) -> int:
    """For appending, behind a line that a killed process may have torn."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")
    return fd


def _line(event: Event) -> dict[str, Any]:
    match event:
        case TrialStarted(trial_id=trial):
            return {"event": "started", "trial": trial}
        case TrialPhase(trial_id=trial, phase=phase):
            return {"event": "phase", "trial": trial, "phase": phase}
        case TrialEnded(record=record):
            return {"event": "ended", "trial": record.trial_id, "dir": record.trial_dir.name}
        case RunGauges():
            return {"event": "gauges", **asdict(event)}
        case Notice(line=line):
            return {"event": "notice", "line": line.encode(errors="replace").decode()}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            read = orjson.loads(line)
        except ValueError:
            continue
        if isinstance(read, dict) and {"at", "event"} <= read.keys():
            yield cast("dict[str, Any]", read)


def _complaint(root: Path, error: OSError) -> str:
    return f"{root / JOURNAL_NAME}: {error.strerror}; what is asked of it later is lost"
