# SPDX-License-Identifier: Apache-2.0
"""A response is read as an independent reader of HTTP reads it, or refused; and on its connection
nothing is mixed up, held on to, or left open."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.engine.connection import Connection
from envkit.agent.engine.http import NotHttp, ResponseReader
from envkit.agent.engine.line import Line
from envkit.agent.engine.options import EngineOptions
from envkit.agent.types import EncodedPrompt
from envkit.fault import (
    EngineBusy,
    EngineFailed,
    EngineGarbage,
    EngineRefused,
    EngineUnreachable,
)

OK = b"HTTP/1.1 200 OK\r\n"


def read_by_h11(raw: bytes) -> tuple[int, bytes]:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(raw)
    client.receive_data(b"")
    status, body = 0, b""
    while not isinstance(event := client.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Response):
            status = event.status_code
        if isinstance(event, h11.Data):
            body += bytes(event.data)
    return status, body


def read(raw: bytes, cuts: list[int]) -> tuple[int, bytes]:
    reader, body = ResponseReader(), b""
    for start, stop in pairwise([0, *sorted(each % (len(raw) + 1) for each in cuts), len(raw)]):
        if start < stop:
            body += reader.feed(raw[start:stop])
    reader.end()
    return reader.status, body


bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
extra = st.sampled_from([b"", b"Date: today\r\n", b"X-A: 1\r\nX-A: 2\r\n", b"Server:  u \r\n"])


def chunked(parts: list[bytes]) -> bytes:
    chunks = b"".join(b"%X\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def by_length(parts: list[bytes]) -> bytes:
    whole = b"".join(parts)
    return b"Content-Length: %d\r\n\r\n" % len(whole) + whole


def by_close(parts: list[bytes]) -> bytes:
    return b"Connection: close\r\n\r\n" + b"".join(parts)


@given(
    st.sampled_from([chunked, by_length, by_close]), bodies, extra, st.lists(st.integers(0, 999))
)
def test_any_cut_of_a_response_is_read_as_h11_reads_it(
    framed: Callable[[list[bytes]], bytes], parts: list[bytes], headers: bytes, cuts: list[int]
) -> None:
    raw = OK + headers + framed(parts)
    assert read(raw, cuts) == read_by_h11(raw) == (200, b"".join(parts))


@given(st.binary(max_size=60), st.lists(st.integers(0, 99), max_size=4))
def test_any_bytes_are_read_or_refused(raw: bytes, cuts: list[int]) -> None:
    for start in (b"", OK, OK + b"Transfer-Encoding: chunked\r\n\r\n"):
        try:
            read(start + raw, cuts)
        except (NotHttp, ConnectionResetError):
            continue


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200OK\r\n\r\n",
        b"HTTP/1.1 099 No\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b" folded: yes\r\n\r\n",
        OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
        OK + b"Content-Length: -3\r\n\r\n",
        OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n",
        OK + b"Content-Length: 3\r\n\r\nfour",
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n7fffffffffffff\r\nabc",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore",
        OK + b"X: " + b"x" * (1 << 17),
    ],
)
def test_what_does_not_say_where_it_ends_is_refused(raw: bytes) -> None:
    with pytest.raises(NotHttp):
        read(raw, [])


def test_what_is_only_informational_is_passed_over() -> None:
    assert read(b"HTTP/1.1 100 Continue\r\n\r\n" + OK + by_length([b"a"]), []) == (200, b"a")


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (OK + b"Content-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No\r\n\r\n", True),
        (OK + b"Connection: Close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
    ],
)
def test_a_connection_is_kept_where_both_sides_keep_it(head: bytes, keeps: bool) -> None:
    reader = ResponseReader()
    reader.feed(head)
    assert reader.done
    assert reader.keeps is keeps


# --- on a connection ------------------------------------------------------------------------------

type Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(serve: Serve) -> AsyncGenerator[Connection]:
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with Connection(
            EngineOptions(url=f"http://127.0.0.1:{port}/under/v1/")
        ) as connection:
            yield connection
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


async def request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    return head, await reader.readexactly(int(length[0].split(b":")[1])) if length else b""


@pytest.mark.integration
def test_a_prompt_may_grow_after_an_engine_that_refused_it_unread() -> None:
    """Its text is sent as it lies, and whoever holds it would keep it from growing."""
    prompt = EncodedPrompt()
    prompt.extend(range(2_000_000))

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\nno")
        await asyncio.get_running_loop().create_future()

    async def run() -> None:
        async with served(refuse) as connection:
            with pytest.raises(EngineRefused):
                await connection.post("/x", b"[", prompt.text, b"]")
            prompt.extend([1])

    asyncio.run(run())
    assert prompt.text.endswith(b",1999999,1")


@pytest.mark.integration
def test_requests_arrive_whole_one_after_another_on_one_connection() -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await request(reader))
            writer.write(OK + by_length([seen[-1][1], b"!"]))

    async def run() -> list[list[bytes]]:
        async with served(echo) as connection:
            texts = [b"x" * size for size in (0, 1, 3_000_000)]
            return [
                (await connection.post("/a", text, bytearray(b"yz"))).payloads for text in texts
            ]

    said = asyncio.run(run())
    assert said == [[b"x" * size + b"yz!"] for size in (0, 1, 3_000_000)]
    assert all(head.startswith(b"POST /under/a HTTP/1.1\r\n") for head, _ in seen)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", EngineUnreachable),
        (OK + b"Content-Length: 9\r\n\r\nhalf", EngineUnreachable),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhalf", EngineUnreachable),
        (OK + b"Content-Type: text/event-stream\r\n\r\ndata: {}\n\n", EngineUnreachable),
        (OK + b"Content-Type: text/event-stream\r\n\r\ndata: [DONE]\n\n", EngineGarbage),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07", EngineGarbage),
        (b"HTTP/1.1 429 Later\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", EngineBusy),
    ],
)
def test_what_is_no_whole_answer_has_a_name(answer: bytes, error: type[Exception]) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def run() -> None:
        async with served(say) as connection:
            with pytest.raises(error) as raised:
                await connection.post("/x", b"{}")
            if isinstance(raised.value, EngineBusy):
                assert raised.value.retry_after_s == 7.0

    asyncio.run(run())


def test_what_came_whole_stands_however_its_connection_ends() -> None:
    async def run() -> list[bytes | None]:
        line = Line()
        line.data_received(OK + by_length([b"whole"]))
        line.connection_lost(ConnectionResetError())
        return [await line.part(), await line.part()]

    assert asyncio.run(run()) == [b"whole", None]


@pytest.mark.parametrize("why", [ConnectionResetError, MemoryError])
def test_whatever_ends_a_connection_ends_the_wait_for_its_answer(why: type[Exception]) -> None:
    async def run() -> None:
        line = Line()
        waiting = asyncio.ensure_future(line.part())
        await asyncio.sleep(0)
        line.connection_lost(why())
        await waiting

    with pytest.raises(why):
        asyncio.run(run())


@pytest.mark.integration
@pytest.mark.parametrize("said", [b"[1]", b"7", b"null", b"no"])
def test_what_is_asked_is_answered_with_an_object(said: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(OK + by_length([said]))

    async def run() -> None:
        async with served(say) as connection:
            with pytest.raises(EngineGarbage):
                await connection.ask("/weight_info")

    asyncio.run(run())


@pytest.mark.integration
@pytest.mark.parametrize(("status", "error"), [(429, EngineBusy), (500, EngineFailed), (404, None)])
def test_a_status_that_may_be_another_later_is_no_answer(
    status: int, error: type[Exception] | None
) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 %d So\r\n" % status + by_length([b"no"]))

    async def run() -> None:
        async with served(say) as connection:
            if error is None:
                assert await connection.status_of("/x", b"{}") == status
                return
            with pytest.raises(error):
                await connection.status_of("/x", b"{}")

    asyncio.run(run())


@pytest.mark.integration
def test_an_error_inside_a_stream_is_seen_wherever_it_stands() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        error = b'{"error": {"message": "no", "code": 400}}'
        events = b"data: {}\n\ndata: " + error + b"\n\ndata: [DONE]\n\n"
        writer.write(OK + b"Content-Type: text/event-stream\r\n" + by_length([events]))

    async def run() -> None:
        async with served(say) as connection:
            with pytest.raises(EngineRefused, match="HTTP 400: no"):
                await connection.post("/x", b"{}")

    asyncio.run(run())


@pytest.mark.integration
def test_a_connection_that_the_engine_closed_meanwhile_is_not_used_again() -> None:
    counts: list[int] = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        counts.append(1)
        writer.write(OK + by_length([b"a"]))
        await writer.drain()
        writer.close()

    async def run() -> None:
        async with served(once) as connection:
            for _ in range(3):
                await connection.post("/x", b"{}")
                while connection.kept:  # noqa: ASYNC110 - it has no event to wait for
                    await asyncio.sleep(0)

    asyncio.run(run())
    assert len(counts) == 3
