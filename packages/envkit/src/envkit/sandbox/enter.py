# SPDX-License-Identifier: Apache-2.0
"""Run something inside a box that already lives, confined as the box's own processes are.

A process that joined by setns(2) alone holds every capability and stands outside the box's
group and limits. So, in this order: close descriptors, clear the environment, join the
namespaces, become the box's user, fork into its pid namespace, join its control group, set
rlimits, drop every capability and the bounding set, forbid new privileges. Only a process with
one thread may do this (the kernel answers EINVAL otherwise).

Process tree: caller → waiter (host side, reports the exit status) → the confined process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from envkit.sandbox import kernel
from envkit.sandbox.cgroup import Group, attach_self
from envkit.sandbox.limits import Limits

CANNOT_ENTER: Final = 213
"""Exit status of a waiter whose box could not be entered (it is gone)."""

CANNOT_EXEC: Final = 127
"""As a shell reports a command that does not exist."""

_NAMESPACES: Final = (
    os.CLONE_NEWUSER
    | os.CLONE_NEWNS
    | os.CLONE_NEWNET
    | os.CLONE_NEWIPC
    | os.CLONE_NEWUTS
    | os.CLONE_NEWPID
)
_OOM_FIRST: Final = b"500"
"""oom_score_adj of entered processes: process 1 of the box must outlive them."""


@dataclass(frozen=True, slots=True)
class Target:
    """A living box, as seen from outside."""

    fd: int
    """Process descriptor of the box's process 1: a number could be another's by now."""
    group: Group | None
    limits: Limits
    network_shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to execute, with its three standard descriptors."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: int
    stdout: int
    stderr: int


def spawn(target: Target, command: Command) -> int:
    """Execute ``command`` in the box; returns the pid of its waiter, a child of the caller."""
    return enter(
        target,
        keep=(command.stdin, command.stdout, command.stderr),
        body=lambda: _execute(command),
    )


def enter(
    target: Target,
    *,
    keep: Sequence[int],
    body: Callable[[], int | None],
    reachable: bool = True,
) -> int:
    """Call ``body`` in a confined child in the box; returns the pid of its waiter.

    ``body`` runs in a copy of the caller's memory: what must not be readable in the box must
    not be in it. What it returns (``None`` is 0) is the exit status; an exception is 1. Where it
    is not ``reachable`` it stays out of the box's pid namespace: it sees the box's files, and no
    process of the box can signal it.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be_waiter(target, keep, body, parent, reachable)
    return pid


def _be_waiter(
    target: Target,
    keep: Sequence[int],
    body: Callable[[], int | None],
    parent: int,
    reachable: bool,
) -> NoReturn:
    status = CANNOT_ENTER
    try:
        _reset_signals()
        _expect_oom()
        procs = target.group.open_procs() if target.group else []
        _join(target, reachable)
        kernel.forbid_dumps()
        kernel.die_with_parent(parent)  # a change of user clears it: so after joining
        # Seen from another pid namespace a parent reads as 0.
        waiter = 0 if reachable else os.getpid()
        child = os.fork()
        if child == 0:
            _be_confined(target, procs, keep, body, waiter)
        _close_all_but(())
        status = _status_of(child)
    except OSError:
        status = CANNOT_ENTER
    finally:
        os._exit(status)


def _status_of(child: int) -> int:
    """Wait for the child; a termination signal to the waiter kills the child's session."""

    def kill(_number: int, _frame: object) -> None:
        _kill_session(child)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, kill)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _kill_session(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _join(target: Target, reachable: bool) -> None:
    flags = _NAMESPACES & ~os.CLONE_NEWNET if target.network_shared else _NAMESPACES
    flags = flags if reachable else flags & ~os.CLONE_NEWPID
    if os.geteuid() == 0:
        with contextlib.suppress(PermissionError):  # denied inside a user namespace of our own
            os.setgroups([])
    os.setns(target.fd, flags)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.chdir("/")


def _be_confined(
    target: Target,
    procs: list[int],
    keep: Sequence[int],
    body: Callable[[], int | None],
    waiter: int,
) -> NoReturn:
    status = 1
    try:
        kernel.die_with_parent(waiter)
        os.setsid()
        attach_self(procs)
        _close_all_but(keep)
        os.environ.clear()
        target.limits.apply_to_self(without_cgroup=target.group is None)
        kernel.drop_privileges()
        kernel.forbid_dumps()
        status = body() or 0
    finally:
        os._exit(status)


def _expect_oom() -> None:
    """Before the fork and the user change: a process that forbids dumps may not write it."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(_OOM_FIRST)


def _execute(command: Command) -> NoReturn:
    above = max(3, command.stdin, command.stdout, command.stderr) + 1
    given = (command.stdin, command.stdout, command.stderr)
    for number, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, above) for fd in given]):
        os.dup2(fd, number, inheritable=True)
    os.closerange(3, above + 3)
    try:
        os.chdir(command.cwd)
    except OSError as error:
        _complain(f"cannot change to {command.cwd}: {error.strerror}")
    try:
        os.execvpe(command.argv[0], list(command.argv), dict(command.env))
    except OSError as error:
        _complain(f"{command.argv[0]}: {error.strerror}")


def _complain(message: str) -> NoReturn:
    os.write(2, f"{message}\n".encode())
    os._exit(CANNOT_EXEC)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _close_all_but(keep: Sequence[int]) -> None:
    start = 0
    for fd in sorted(keep):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
