# SPDX-License-Identifier: Apache-2.0
"""A slow stream brings every byte, late; one that crawls outlasts what it was given."""

import asyncio
import os
import re

import pytest

from envkit.preflight.chaos import streams
from envkit.preflight.chaos.wire import NOISE

PATIENCE_S = 60
STREAM = os.urandom(1 << 20)


async def carried(kind: str, what: str, stream: bytes, hang_s: float = 6.0) -> tuple[bytes, str]:
    """What arrives of a stream, and what was said of it."""
    said, arrived = list[str](), list[bytes]()
    flow = streams.flow(kind, hang_s, said.append)

    async def box(what: str, path: str, fds: list[int]) -> int:
        """Takes its end of the pipe, as a message does, before it is first away."""
        fd = os.dup(fds[0])
        if what == "unpack":
            arrived.append(await asyncio.to_thread(_read, fd))
        else:
            await asyncio.to_thread(_write, fd, stream)
        return 7

    read_end, write_end = os.pipe()
    mine, theirs = (write_end, read_end) if what == "unpack" else (read_end, write_end)
    asking = asyncio.ensure_future(streams.redirect(box, what, "/logs", theirs, flow))
    await asyncio.sleep(0)
    os.close(theirs)
    if what == "unpack":
        await asyncio.to_thread(_write, mine, stream)
    else:
        arrived.append(await asyncio.to_thread(_read, mine))
    async with asyncio.timeout(PATIENCE_S):
        assert await asking == 7
    return b"".join(arrived), "".join(said)


def _read(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def _write(fd: int, data: bytes) -> None:
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)


@pytest.mark.parametrize("what", ["pack", "unpack"])
def test_a_trickle_loses_nothing_and_takes_its_time(what: str) -> None:
    arrived, said = asyncio.run(carried("trickle", what, STREAM))
    assert arrived == STREAM
    seconds = re.fullmatch(r"8192 bytes passed in (\d+\.\d) s", said)
    assert seconds is not None
    assert float(seconds[1]) >= 1.6  # sixteen pauses


@pytest.mark.parametrize("what", ["pack", "unpack"])
@pytest.mark.parametrize(
    ("kind", "arrives"), [("garbage", NOISE * 16), ("cut", STREAM[:515]), ("empty", b"")]
)
def test_a_bent_stream_ends_otherwise(what: str, kind: str, arrives: bytes) -> None:
    assert asyncio.run(carried(kind, what, STREAM)) == (arrives, kind)


def test_what_crawls_has_brought_next_to_nothing_when_it_is_given_up() -> None:
    said: list[str] = []

    async def main() -> tuple[bytes, int]:
        seen = asyncio.Event()

        def say(effect: str) -> None:
            said.append(effect)
            seen.set()

        flow = streams.flow("crawl", 0.64, say)
        (source, feed), (read_end, target) = os.pipe(), os.pipe()
        os.write(feed, bytes(1024))  # what the smallest archive ends with
        os.close(feed)
        crawling = asyncio.ensure_future(flow(source, target))
        async with asyncio.timeout(PATIENCE_S):
            await seen.wait()
        crawling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await crawling
        return await asyncio.to_thread(_read, read_end), source

    arrived, source = asyncio.run(main())
    assert 16 <= len(arrived) < 1024
    assert re.fullmatch(r"16 bytes passed in \d+\.\d s", said[0])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(source)
