# SPDX-License-Identifier: Apache-2.0
"""A program that keeps a server: ``python keeper.py GRACE_S COMMAND...``, its input held open.

vLLM is several processes, and those below the first outlive it when it is killed. The keeper leads
the group they are all in. Once its input ends, because whoever started it let go or was killed,
or once the server ends by itself, it ends everything in the group: kindly, and after GRACE_S
seconds not so. It exits with the server's status. Standard library only: it starts in no time.

It is two processes. Some owners die with their own children: a Ray worker's are killed with it. So
the one that keeps is a child of the one that was started, and outlives that.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_LOOK_S = 0.1


def keep(grace_s: float, command: Sequence[str]) -> int:
    """Run until the input or the server ends; the server's status, 0 where it was ended."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while server.poll() is None and not _let_go():
        pass
    status = server.poll()
    _end_all(signal.SIGTERM)
    until = time.monotonic() + grace_s
    while others(os.getpgrp()) and time.monotonic() < until:
        server.poll()
        time.sleep(_LOOK_S)
    while others(os.getpgrp()):
        _end_all(signal.SIGKILL)
        server.poll()
        time.sleep(_LOOK_S)
    return status or 0


def others(group: int) -> list[int]:
    """Processes of the group that run, but for this one and the leader; a zombie is none."""
    found = (_runs_in(group, each) for each in Path("/proc").glob("[0-9]*/stat"))
    return [pid for pid in found if pid and pid not in (os.getpid(), group)]


def _runs_in(group: int, stat: Path) -> int:
    try:
        state, _, its_group = stat.read_bytes().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):  # it went away
        return 0
    return int(stat.parent.name) if int(its_group) == group and state != b"Z" else 0


def _let_go() -> bool:
    """Whether the input has ended, looked at for a moment."""
    ready, _, _ = select.select([sys.stdin], [], [], _LOOK_S)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1)


def _end_all(number: signal.Signals) -> None:
    for pid in others(os.getpgrp()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait_for(keeper: int) -> int:
    """Be nothing but the keeper's parent; its status."""
    code = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
    return code if code >= 0 else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if keeper := os.fork():
        sys.exit(_wait_for(keeper))
    sys.exit(keep(float(sys.argv[1]), sys.argv[2:]))
