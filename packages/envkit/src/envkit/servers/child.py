# SPDX-License-Identifier: Apache-2.0
"""Runs one blocking piece of work in a forked child that can be killed.

The gateway is one thread with one event loop; whatever may block or crash (a slow file, a corrupt
document, a library in C) runs here, with a deadline and a bound on memory. The child holds no
descriptor but the result pipe, so a hung one keeps no client connected, and it dies with the
gateway. What it returns is JSON, never pickle: a document that takes over its parser gains
nothing in the gateway. Must be called from a process with a single thread.
"""

import asyncio
import ctypes
import gc
import json
import os
import resource
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NoReturn

from envkit.sandbox.starvation import starved
from envkit.servers.contract import Done, Image, ToolFault
from envkit.servers.fds import exit_status, kill, reading, reap_later

RESULT_BYTES = 64 << 20
"""More than any honest result; a child that sends more is killed."""
PR_SET_PDEATHSIG = 1
MAX_FD = 1 << 20
STARTING, RESULT = b"!", b"="

type Work = Callable[[Callable[[], None]], Done]
"""Takes a function to call right before the first effect."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildBudget:
    """What one child may use."""

    seconds: float
    memory_mib: int
    slow: str = "server"
    """Who made it so if it is too slow: ``model`` for a pattern without an end. A child that found
    no core is never the model's doing."""


async def in_child(work: Work, budget: ChildBudget, keep: Sequence[int] = ()) -> Done:
    """Run `work` in a child; raises ToolFault for its faults, its death and its deadline.

    `keep` are descriptors that the child may use; it loses all others.
    """
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    pid = _fork(work, write_fd, budget.memory_mib, keep)
    os.close(write_fd)
    heard = bytearray()
    try:
        async with reading(read_fd, _bounded(heard, pid)) as ended, asyncio.timeout(budget.seconds):
            await ended
            status = await exit_status(pid)
            pid = 0
    except TimeoutError:
        held_up = starved(pid, wall_s=budget.seconds, cpu_s=None, cpus=1.0)
        raise _too_slow(budget, heard, "server" if held_up else budget.slow) from None
    finally:
        if pid:
            kill(pid)
            reap_later(pid)
    return _result(heard, status)


def _bounded(heard: bytearray, pid: int) -> Callable[[bytes], None]:
    def feed(data: bytes) -> None:
        heard.extend(data)
        if len(heard) > RESULT_BYTES:
            kill(pid)

    return feed


def _fork(work: Work, write_fd: int, memory_mib: int, keep: Sequence[int]) -> int:
    """Fork with every signal blocked, so that none reaches the gateway's handlers in the child."""
    parent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        _serve_child(work, write_fd, memory_mib, parent, keep)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return pid


def _serve_child(
    work: Work, write_fd: int, memory_mib: int, parent: int, keep: Sequence[int]
) -> NoReturn:
    try:
        gc.disable()
        _let_go(parent)
        _close_all_but(write_fd, *keep)
        _bound_memory(memory_mib)
        record = _outcome(work, write_fd)
        _write_all(write_fd, RESULT + json.dumps(record).encode())
    finally:
        os._exit(0)


def _let_go(parent: int) -> None:
    """Drop what a child of the gateway must not hold: its signals and its output."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)


def _close_all_but(*keep: int) -> None:
    """Close the gateway's sockets and files, so that a hung child keeps no client connected."""
    edges = [2, *sorted(keep), MAX_FD]
    for low, high in pairwise(edges):
        os.closerange(low + 1, high)


def _bound_memory(memory_mib: int) -> None:
    with open("/proc/self/statm", "rb") as statm:
        pages = int(statm.read().split()[0])
    limit = pages * resource.getpagesize() + (memory_mib << 20)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or hard > limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _outcome(work: Work, write_fd: int) -> dict[str, Any]:
    """The work's result or fault as JSON; the boundary where an unknown exception is named."""
    try:
        return {"done": asdict(work(lambda: _write_all(write_fd, STARTING)))}
    except ToolFault as fault:
        return {"fault": vars(fault)}
    except MemoryError:
        return {"fault": vars(_too_big())}
    except Exception as error:
        return {"fault": vars(_broken(error))}


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _result(heard: bytearray, status: int) -> Done:
    started, _, payload = bytes(heard).partition(RESULT)
    if status or not payload:
        raise _died(status, started)
    try:
        record: dict[str, Any] = json.loads(payload)
        if "fault" in record:
            raise _fault(record["fault"], applied="unknown" if started else "no")
        done: dict[str, Any] = record["done"]
        done["images"] = tuple(Image(**image) for image in done["images"])
        return Done(**done)
    except (ValueError, KeyError, TypeError):
        raise _died(status, started) from None


def _fault(record: dict[str, Any], applied: str) -> ToolFault:
    if record["applied"] == "no":
        record["applied"] = applied
    return ToolFault(record.pop("code"), record.pop("message"), **record)


def _applied(heard: bytes | bytearray) -> str:
    return "unknown" if STARTING in heard[:1] else "no"


def _too_slow(budget: ChildBudget, heard: bytearray, owner: str) -> ToolFault:
    return ToolFault(
        "deadline_exceeded",
        f"The call was stopped after {budget.seconds:g} s.",
        fix="Ask for less at once (fewer pages, a smaller folder), or use code_exec.",
        owner=owner,
        applied=_applied(heard),
    )


def _too_big() -> ToolFault:
    return ToolFault(
        "file_too_large",
        "The file needs more memory than one call may use.",
        fix="Read a part of it, or process it with code_exec.",
    )


def _broken(error: Exception) -> ToolFault:
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(last.filename)}:{last.lineno}"
    return ToolFault(
        "internal_error",
        f"The tool failed on this input ({type(error).__name__}: {error}; {where}).",
        fix="Try another file or other arguments; the same call will fail again.",
        owner="server",
    )


def _died(status: int, started: bytes) -> ToolFault:
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return ToolFault(
        "reader_crashed",
        f"The process that handled this call died ({how}).",
        fix="The file is corrupt or too complex; read less of it, or inspect it with code_exec.",
        owner="server",
        applied=_applied(started),
    )
