#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: Apache-2.0
# pyright: basic
"""What a box has as ``python3``: ask for a warmed interpreter, else become the real one.

Contract: until the byte ``G`` is sent nothing of the program has run, so every failure before it
ends in the real interpreter, started as it was asked for. After it this process stands for the
warmed one: it passes signals on and ends as that ends; when it dies, that one dies too. It imports
built-in modules only, because every start pays for it. The frame is that of
`envkit.sandbox.warm.request`.
"""

import posix
import sys
from _signal import (  # pyright: ignore[reportMissingImports] - built in, no stub
    SIG_DFL,
    SIG_IGN,
    getsignal,
    signal,
)

DOOR = "/run/envkit/python"
NAMES = ("/usr/local/bin/python3", "/usr/local/bin/python")
PATIENCE_S = 60.0
UNCATCHABLE = (9, 19)
OF_EVERY_PYTHON = (13, 25)
"""Ignored by whatever interpreter runs: a broken pipe, a file that is too large."""
PASSED_ON = (1, 2, 3, 10, 12, 14, 15, 18)
KILLED = 9


def command_line() -> list[str]:
    """As whoever asks wrote it, as far as one can know: by name, found on the path."""
    name = sys.argv[0]
    return [name.rpartition("/")[2] if name in NAMES else name, *sys.argv[1:]]


def forget_own_locale() -> None:
    """In a plain locale every interpreter sets this variable at its start, the next one too."""
    if sys.flags.utf8_mode:
        posix.environ.pop(b"LC_CTYPE", None)
        posix.unsetenv("LC_CTYPE")


def cold() -> None:
    """Become the real interpreter; by the name it was called, it finds the same paths."""
    posix.execv(sys.executable, command_line())


def ask():
    """The connection and the pid of the interpreter that waits for its word, or nothing."""
    if sys.argv[0] not in NAMES or not only_standard_descriptors():
        return None
    from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

    sock = socket(AF_UNIX, SOCK_STREAM)
    sock.setblocking(False)
    sock.connect(DOOR)
    sock.settimeout(PATIENCE_S)
    frame = request()
    rights = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    sent = sock.sendmsg([frame], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    if sent < len(frame):
        sock.sendall(frame[sent:])
    kind, pid = answer(sock)
    return (sock, pid) if kind == b"R" else None


def only_standard_descriptors() -> bool:
    """All three are there, and none beside them that the program might use."""
    for number in (0, 1, 2):
        posix.fstat(number)
    for name in posix.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                posix.fstat(int(name))
            except OSError:
                continue  # it was the listing's own
            return False
    return not posix.isatty(0)


def request() -> bytes:
    """Everything that a program takes from whoever starts it."""
    from resource import getrlimit

    umask = posix.umask(0o77)
    posix.umask(umask)
    ignored = [
        number
        for number in range(1, 32)
        if number not in UNCATCHABLE + OF_EVERY_PYTHON and getsignal(number) == SIG_IGN
    ]
    limits = [f"{kind}:{soft}:{hard}" for kind in range(16) for soft, hard in [getrlimit(kind)]]
    texts = [oct(umask)[2:], " ".join(map(str, ignored)), " ".join(limits), str(len(sys.argv))]
    fields = [posix.getcwdb(), *(text.encode() for text in texts)]
    encoding = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    fields += [argument.encode(*encoding) for argument in command_line()]
    fields += [name + b"=" + value for name, value in posix.environ.items()]
    body = b"".join(field + b"\0" for field in fields)
    return len(body).to_bytes(4, "big") + body


def answer(sock) -> tuple[bytes, int]:
    data = b""
    while len(data) < 5:
        more = sock.recv(5 - len(data))
        if not more:
            return b"", 0
        data += more
    return data[:1], int.from_bytes(data[1:], "big", signed=True)


def stand_for(sock, pid: int) -> None:
    """Pass signals on to the interpreter and end as it ends."""

    def pass_on(number: int, _frame: object) -> None:
        try:  # noqa: SIM105 - contextlib costs every start a millisecond
            posix.kill(pid, number)
        except ProcessLookupError:
            pass

    for number in PASSED_ON:
        if getsignal(number) != SIG_IGN:
            signal(number, pass_on)
    sock.settimeout(None)
    try:
        sock.send(b"G")
    except OSError:
        cold()
    null = posix.open("/dev/null", posix.O_RDWR)
    for number in (0, 1, 2):
        posix.dup2(null, number)
    kind, code = answer(sock)
    if kind != b"E":
        code = -KILLED
    if code < 0:
        if code != -KILLED:
            signal(-code, SIG_DFL)
        posix.kill(posix.getpid(), -code)
    posix._exit(code & 0xFF)


def main() -> None:
    forget_own_locale()
    try:
        found = ask()
    except (OSError, ImportError, ValueError):
        found = None
    if found is None:
        cold()
    else:
        stand_for(*found)


if __name__ == "__main__":
    main()
