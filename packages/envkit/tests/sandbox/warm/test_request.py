# SPDX-License-Identifier: Apache-2.0
"""What crosses to a warmed interpreter comes out as it went in; anything else is for a cold one."""

import contextlib
import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.sandbox.warm.program import Cold, parse
from envkit.sandbox.warm.request import pack, receive, unpack

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
NAME = st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(TEXT, min_size=1), st.dictionaries(NAME, TEXT), TEXT)
def test_a_request_comes_out_as_it_went_in(argv: list[str], env: dict[str, str], cwd: str) -> None:
    asked = unpack(pack(argv, env, cwd)[4:])
    assert list(asked.argv) == argv
    assert {os.fsdecode(k): os.fsdecode(v) for k, v in asked.env.items()} == env
    assert (asked.cwd, asked.umask, asked.ignored, asked.limits) == (cwd, None, (), {})


@given(st.binary() | st.lists(st.binary(max_size=3)).map(lambda parts: b"\0".join(parts) + b"\0"))
def test_other_bytes_are_a_request_or_for_a_cold_interpreter(body: bytes) -> None:
    with contextlib.suppress(Cold):
        assert unpack(body).argv


@given(st.binary(max_size=300), st.integers(0, 8))
def test_a_frame_is_read_with_three_descriptors_or_not_at_all(sent: bytes, count: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull) as null:
        socket.send_fds(ours, [sent or b"\0"], [null.fileno()] * count)
        ours.shutdown(socket.SHUT_WR)
        try:
            body, fds = receive(theirs)
        except Cold:
            return
        for fd in fds:
            os.close(fd)
        assert len(fds) == 3 == count
        assert sent.startswith(struct.pack(">I", len(body)) + body)


@pytest.mark.parametrize(
    ("line", "kind", "argv", "flags"),
    [
        ("", "stdin", [""], ""),
        ("- a -b", "stdin", ["-", "a", "-b"], ""),
        ("-u - a", "stdin", ["-", "a"], "u"),
        ("s.py -c x", "script", ["s.py", "-c", "x"], ""),
        ("-B s.py", "script", ["s.py"], "B"),
        ("-c x -m y", "command", ["-c", "-m", "y"], ""),
        ("-cx", "command", ["-c"], ""),
        ("-Bucx y", "command", ["-c", "y"], "Bu"),
        ("-I -m mod -c", "module", ["-m", "-c"], "IEs"),
    ],
)
def test_the_common_command_lines_are_known(
    line: str, kind: str, argv: list[str], flags: str
) -> None:
    program = parse(line.split())
    assert (program.kind, list(program.argv), program.flags) == (kind, argv, frozenset(flags))


@pytest.mark.parametrize(
    "line", ["-i", "-V", "--version", "-O x.py", "-c", "-m", "-X dev", "-Bi", "-P s.py", "--", "-h"]
)
def test_every_other_one_is_for_a_cold_interpreter(line: str) -> None:
    with pytest.raises(Cold):
        parse(line.split())
