# SPDX-License-Identifier: Apache-2.0
"""Run something inside a box that already lives, confined as the box's own processes are.

A process that joined by setns(2) alone holds every capability and stands outside the box's
group and limits. So, in this order: close descriptors, clear the environment, join the
namespaces, become the box's user, fork into its pid namespace, join its control group, set
rlimits, drop every capability and the bounding set, forbid new privileges. Only a process with
one thread may do this (the kernel answers EINVAL otherwise).

Process tree: caller → waiter (host side, reports the exit status) → the confined process. What
need not be in the box's pid namespace is confined itself, without a waiter.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

from envkit.sandbox import kernel
from envkit.sandbox.limits import Limits

CANNOT_ENTER: Final = 213
"""Exit status of what could not enter its box, where nothing of the box's decides the status."""

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


class Joinable(Protocol):
    """A control group that can be joined."""

    def open_procs(self) -> list[int]:
        """Descriptors that attach whoever writes ``0`` to them."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A living box, as seen from outside."""

    fd: int
    """Process descriptor of the box's process 1: a number could be another's by now."""
    group: Joinable | None
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
    process of the box can signal it. It is its own waiter then.
    """
    pid = fork_into(target, keep=keep, reachable=reachable)
    if pid == 0:
        _call(body)
    return pid


def fork_into(
    target: Target,
    *,
    keep: Sequence[int],
    reachable: bool = True,
    hold: Sequence[int] = (),
    oversee: Callable[[int], int] | None = None,
    outlives: bool = False,
) -> int:
    """As fork(2): 0 in a confined child in the box, the pid of its waiter in the caller.

    The waiter keeps the descriptors ``hold`` and ends with the code that ``oversee`` returns for
    the child's pid. One that ``outlives`` its caller ends with the box alone.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    refuse = _refuse_by_signal if reachable else _refuse_by_code
    procs = _be_waiter(target, None if outlives else parent, reachable, refuse)
    if not reachable:  # it joins no pid namespace, so it need not fork to be in it
        _be_confined(target, procs, keep, parent, refuse)
        return 0
    told, tell = os.pipe2(os.O_CLOEXEC)
    child = fork_inside()
    if child:
        os.close(tell)
        _wait_for(child, (*hold, told), oversee or status_of, told)
    # Seen from another pid namespace a parent reads as 0.
    _be_confined(target, procs, (*keep, tell), 0, lambda: _refuse_to_waiter(tell))
    os.close(tell)
    return 0


def _refuse_by_signal() -> NoReturn:
    """End as no command can: whatever its status, its waiter ends with a status too."""
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(CANNOT_ENTER)


def _refuse_by_code() -> NoReturn:
    """End with a status that is none of what runs in this very process."""
    os._exit(CANNOT_ENTER)


def _refuse_to_waiter(tell: int) -> NoReturn:
    """Have the waiter end in our place: our own status could be a command's."""
    os.write(tell, b"x")
    os._exit(CANNOT_ENTER)


def fork_inside() -> int:
    """As fork(2), in a process that has joined a box; it refuses where it cannot.

    A box that ended meanwhile takes nobody in (ENOMEM). An error must not leave here: this process
    is a copy of its caller, and would go on as a second one on the same sockets.
    """
    try:
        return os.fork()
    except OSError:
        _refuse_by_signal()


def attach_self(procs: Sequence[int]) -> None:
    """Move the calling process into the group whose descriptors these are."""
    for fd in procs:
        os.write(fd, b"0")


def _be_waiter(
    target: Target, parent: int | None, reachable: bool, refuse: Callable[[], NoReturn]
) -> list[int]:
    """Join the box but for its limits; returns the descriptors of its group."""
    entered = False
    try:
        reset_signals()
        expect_oom()
        procs = target.group.open_procs() if target.group else []
        _join(target, reachable)
        kernel.forbid_dumps()
        if parent is not None:
            kernel.die_with_parent(parent)  # a change of user clears it: so after joining
        entered = True
        return procs
    finally:
        if not entered:
            refuse()


def _wait_for(
    child: int, hold: Sequence[int], oversee: Callable[[int], int], told: int
) -> NoReturn:
    """End as the child ends; ``told`` says that it never came to be what it was to be."""
    try:
        close_all_but(hold)
        status = oversee(child)
        os.set_blocking(told, False)
        with contextlib.suppress(BlockingIOError):
            if os.read(told, 1):
                _refuse_by_signal()
        os._exit(status)
    finally:
        _refuse_by_signal()


def status_of(child: int) -> int:
    """Wait for the child; a termination signal to the waiter kills the child's session."""
    kill_when_told(child)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def kill_when_told(child: int) -> None:
    """Let a termination signal to this waiter kill the child's session."""

    def kill(_number: int, _frame: object) -> None:
        kill_session(child)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, kill)


def kill_session(child: int) -> None:
    """SIGKILL the child and its process group."""
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
    waiter: int,
    refuse: Callable[[], NoReturn],
) -> None:
    confined = False
    try:
        kernel.die_with_parent(waiter)
        os.setsid()
        attach_self(procs)
        close_all_but(keep)
        os.environ.clear()
        target.limits.apply_to_self(without_cgroup=target.group is None)
        kernel.drop_privileges()
        kernel.forbid_dumps()
        confined = True
    finally:
        if not confined:
            refuse()


def _call(body: Callable[[], int | None]) -> NoReturn:
    status = 1
    try:
        status = body() or 0
    finally:
        os._exit(status)


def expect_oom() -> None:
    """Before the fork and the user change: a process that forbids dumps may not write it."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(_OOM_FIRST)


def _execute(command: Command) -> NoReturn:
    _take_streams((command.stdin, command.stdout, command.stderr))
    try:
        os.chdir(command.cwd)
    except OSError as error:
        _complain(f"cannot change to {command.cwd}: {error.strerror}")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ignored by this interpreter and inherited
    try:
        os.execvpe(command.argv[0], list(command.argv), dict(command.env))
    except OSError as error:
        _complain(f"{command.argv[0]}: {error.strerror}")


def _take_streams(given: Sequence[int]) -> None:
    """Make them 0, 1 and 2 by the lowest numbers that are free.

    Of a caller with thousands of descriptors theirs are above what the box may open, and so is the
    next one: 550 boxes at once had commands that ended with 1 and said nothing.
    """
    apart = [fcntl.fcntl(fd, fcntl.F_DUPFD, 3) for fd in given]
    for number, fd in enumerate(apart):
        os.dup2(fd, number, inheritable=True)
    os.closerange(3, max(*given, *apart) + 1)


def _complain(message: str) -> NoReturn:
    os.write(2, f"{message}\n".encode())
    os._exit(CANNOT_EXEC)


def reset_signals() -> None:
    """Take those of the caller's loop back."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def close_all_but(keep: Sequence[int]) -> None:
    """Close every other descriptor of this process."""
    start = 0
    for fd in sorted(keep):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
