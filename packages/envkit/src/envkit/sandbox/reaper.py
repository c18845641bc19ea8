# SPDX-License-Identifier: Apache-2.0
"""What a run made that is still there, found by its token; and the removal of what it left.

Every process of a run has ``ENVKIT_RUN=<token>`` in the environment it started with, every
control group and the stage directory carry the token in their names. A run is dead when the
process that the stage's ``owner`` file names, by its number and its birth, is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.sandbox import cgroup
from envkit.sandbox.stage import OWNER, STAGE_NAME, STAGES

_GONE_S: Final = 10.0
_MARKED_S: Final = 2.0
_MARK: Final = re.compile(rb"ENVKIT_RUN=([0-9a-f]{16})")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Remnant:
    """One thing of a run that is there now."""

    run: str
    kind: str
    """``process``, ``cgroup``, ``mount`` or ``file``."""
    what: str


def remnants(run: str) -> list[Remnant]:
    """Everything that carries the token of ``run`` now, this process and its parents left out."""
    found = [Remnant(run=run, kind="process", what=_describe(pid)) for pid in processes(run)]
    found += [Remnant(run=run, kind="cgroup", what=name) for name in _groups(run)]
    found += [Remnant(run=run, kind="mount", what=line) for line in _mounts(run)]
    found += [Remnant(run=run, kind="file", what=str(path)) for path in _files(run)]
    return sorted(found)


def dead_runs() -> list[str]:
    """Tokens of runs whose owner is gone but which left something."""
    stages = (STAGE_NAME.fullmatch(path.name) for path in STAGES.iterdir())
    runs = {match[1] for match in stages if match} | set(_tokens())
    parent = cgroup.find_parent()
    if parent:
        runs |= {name.split("-", 1)[0] for name in cgroup.leftovers(parent)}
    return sorted(run for run in runs if not _owner_lives(run))


def find_leftovers() -> list[Remnant]:
    """What dead runs left on this machine."""
    return [remnant for run in dead_runs() for remnant in remnants(run)]


def reap() -> list[Remnant]:
    """Remove what dead runs left; returns what could not be removed."""
    for run in dead_runs():
        reap_run(run)
    return find_leftovers()


def reap_run(run: str) -> list[Remnant]:
    """Remove all that carries the token of ``run``, which must be dead; what is left."""
    until = time.monotonic() + _GONE_S
    _kill(run, until)
    _remove_groups(run, until)
    for path in _files(run):
        (path / OWNER).unlink(missing_ok=True)
        for entry in path.glob("*.sock"):
            entry.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.rmdir()
    return remnants(run)


def processes(run: str) -> list[int]:
    """Pids whose starting environment carries the token of ``run``."""
    mark = f"ENVKIT_RUN={run}".encode()
    return [pid for pid in _pids() if mark in _environment(pid).split(b"\0")]


def _kill(run: str, until: float) -> None:
    while (pids := processes(run)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _remove_groups(run: str, until: float) -> None:
    parent = cgroup.find_parent()
    for name in _groups(run) if parent else ():
        group = cgroup.Group.named(parent, name)  # pyright: ignore[reportArgumentType]
        while not group.remove() and time.monotonic() < until:
            group.kill()
            time.sleep(0.05)


def _groups(run: str) -> list[str]:
    parent = cgroup.find_parent()
    names = cgroup.leftovers(parent) if parent else ()
    return [name for name in names if name == run or name.startswith(f"{run}-")]


def _mounts(run: str) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line.split()[1] for line in lines if str(_stage(run)) in line]


def _files(run: str) -> list[Path]:
    path = _stage(run)
    return [path] if path.exists() else []


def _stage(run: str) -> Path:
    return STAGES / f"envkit-run-{run}"


def _owner_lives(run: str) -> bool:
    try:
        number, *born = (_stage(run) / OWNER).read_text().split()
        pid = int(number)
    except (OSError, ValueError):
        return _begins(run) or bool(_server(run))
    if _is_anothers(pid):
        return True
    now = birth(pid)
    return (now != "" and born in ([], [now])) or bool(_server(run))


def _is_anothers(pid: int) -> bool:
    """Whether there is such a process of another user, who may hide it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def birth(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty where there is no such process.

    With the number of the process it names it for good: numbers alone are given again.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _begins(run: str) -> bool:
    """Whether its stage was made just now: it is marked with its owner a moment later."""
    try:
        return time.time() - _stage(run).stat().st_ctime < _MARKED_S
    except OSError:
        return False


def _tokens() -> Iterator[str]:
    """Of the runs that live processes belong to."""
    for pid in _pids():
        for line in _environment(pid).split(b"\0"):
            if match := _MARK.fullmatch(line):
                yield match[1].decode()


def _server(run: str) -> list[int]:
    """Fork servers of a run that still live: they end by themselves, a moment after their owner."""
    return [pid for pid in processes(run) if b"envkit.sandbox.forkserver" in _command(pid)]


def _pids() -> Iterator[int]:
    me = {os.getpid(), os.getppid()}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in me:
            yield int(entry.name)


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""  # gone meanwhile, or another user's


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _describe(pid: int) -> str:
    text = _command(pid).replace(b"\0", b" ").decode(errors="replace").strip()
    return f"{pid} {text[:80]}"
