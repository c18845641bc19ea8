# SPDX-License-Identifier: Apache-2.0
"""Frames and descriptors arrive whole and in order, however the socket cuts them."""

import os
import socket
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.sandbox.wire import MAX_FRAME, Decoder, WireError, frame

messages = st.lists(
    st.dictionaries(st.text(max_size=8), st.text(max_size=40) | st.integers(-9, 9), max_size=4),
    min_size=1,
    max_size=6,
)


@given(messages, st.integers(1, 64))
def test_messages_survive_any_cut(sent: list[dict[str, Any]], piece: int):
    sent = [{k: v for k, v in message.items() if k != "fds"} for message in sent]
    ours, theirs = socket.socketpair()
    raw, feed = socket.socketpair()
    with ours, theirs, raw, feed:
        for message in sent:
            ours.sendall(frame(message))
        data = theirs.recv(1 << 20)
        decoder, got = Decoder(), []
        for start in range(0, len(data), piece):
            feed.sendall(data[start : start + piece])
            assert decoder.receive(raw)
            got += [message for message, _ in decoder.frames()]
    assert got == sent


def test_each_message_gets_its_own_descriptors():
    ours, theirs = socket.socketpair()
    pipes = [os.pipe() for _ in range(3)]
    with ours, theirs:
        socket.send_fds(ours, [frame({"n": 0}, 2)], [pipes[0][0], pipes[1][0]])
        ours.sendall(frame({"n": 1}))
        socket.send_fds(ours, [frame({"n": 2}, 1)], [pipes[2][0]])
        decoder = Decoder()
        got = []
        while len(got) < 3:
            assert decoder.receive(theirs)
            got += list(decoder.frames())
    for number, (_, write) in enumerate(pipes):
        os.write(write, bytes([number]))
    (_, first), (_, none), (_, last) = got
    assert [os.read(fd, 1) for fd in (*first, *last)] == [b"\0", b"\1", b"\2"]
    assert none == []
    for fd in (*first, *last, *(end for pipe in pipes for end in pipe)):
        os.close(fd)


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack(">I", MAX_FRAME + 1),
        struct.pack(">I", 5) + b"nope!",
        struct.pack(">I", 2) + b"[]",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_garbage_is_refused(garbage: bytes):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(garbage)
        decoder = Decoder()
        decoder.receive(theirs)
        with pytest.raises(WireError):
            list(decoder.frames())


def test_a_closed_peer_is_told_apart_from_silence():
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        assert not Decoder().receive(theirs)


def test_descriptors_of_no_message_are_closed():
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    with ours, theirs:
        socket.send_fds(ours, [b"\0"], [read])
        os.close(read)
        decoder = Decoder()
        decoder.receive(theirs)
        decoder.close()
    with pytest.raises(BrokenPipeError):
        os.write(write, b"x")
    os.close(write)
