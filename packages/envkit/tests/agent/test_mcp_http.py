# SPDX-License-Identifier: Apache-2.0
"""Connections are kept while they are good, and a request goes out once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import h11
import pytest

from envkit.agent import mcp_http
from envkit.agent.mcp_http import HttpLink

type Answering = Callable[["Server", asyncio.StreamWriter, str], Awaitable[None]]


class Server:
    """Counts connections and requests, and answers as a test says."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.connections = 0
        self.requests: list[str] = []
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.requests.append(head)
                length = next(
                    (line for line in head.lower().split("\r\n") if line.startswith("content-l")),
                    "content-length: 0",
                )
                await reader.readexactly(int(length.split(":")[1]))
                await self.answering(self, writer, head)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(answering: Answering) -> AsyncGenerator[tuple[Server, HttpLink]]:
    server = Server(answering)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    link = HttpLink(server.url, {"Authorization": "Bearer t"})
    try:
        yield server, link
    finally:
        link.close()
        listening.close()
        await listening.wait_closed()


async def plain(_: Server, writer: asyncio.StreamWriter, __: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine")


async def in_chunks(_: Server, writer: asyncio.StreamWriter, __: str) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nfi\r\n2\r\nne\r\n0\r\n\r\n"
    )


async def to_the_end(_: Server, writer: asyncio.StreamWriter, __: str) -> None:
    writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\nfine")
    writer.close()


async def and_closes(_: Server, writer: asyncio.StreamWriter, __: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nfine")
    writer.close()


async def says_too_much(_: Server, writer: asyncio.StreamWriter, __: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfineHTTP/1.1 200 OK\r\n")


async def post(link: HttpLink, body: bytes = b"{}") -> bytes:
    async with link.exchange("POST", {}, body) as response:
        return await response.body()


@pytest.mark.parametrize(
    ("answering", "connections"),
    [(plain, 1), (in_chunks, 1), (to_the_end, 3), (and_closes, 3), (says_too_much, 3)],
)
def test_a_connection_is_used_again_only_if_both_sides_may_go_on(
    answering: Answering, connections: int
) -> None:
    async def main() -> None:
        async with serving(answering) as (server, link):
            for _ in range(3):
                assert await post(link) == b"fine"
            assert (server.connections, len(server.requests)) == (connections, 3)
            assert "authorization: Bearer t" in server.requests[0].replace("A", "a", 1)

    asyncio.run(main())


def test_requests_side_by_side_have_connections_of_their_own() -> None:
    async def main() -> None:
        async with serving(plain) as (server, link):
            await asyncio.gather(*(post(link) for _ in range(5)))
            await asyncio.gather(*(post(link) for _ in range(5)))
            assert server.connections == 5

    asyncio.run(main())


def test_an_idle_connection_is_not_trusted_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http, "KEPT_S", 0.0)

    async def main() -> None:
        async with serving(plain) as (server, link):
            await post(link)
            await post(link)
            assert server.connections == 2

    asyncio.run(main())


def test_a_lost_request_is_not_sent_again() -> None:
    async def main() -> None:
        async def hang_up_later(server: Server, writer: asyncio.StreamWriter, head: str) -> None:
            if len(server.requests) == 1:
                await plain(server, writer, head)
            else:
                writer.transport.abort()

        async with serving(hang_up_later) as (server, link):
            await post(link)
            with pytest.raises(ConnectionError):
                await post(link)
            assert len(server.requests) == 2

    asyncio.run(main())


def test_a_response_left_unread_takes_its_connection_with_it() -> None:
    async def main() -> None:
        async with serving(plain) as (server, link):
            async with link.exchange("POST", {}, b"{}") as response:
                assert response.status == 200
            assert await post(link) == b"fine"
            assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("location", "followed"),
    [
        ("/mcp/", True),
        ("{url}/", True),
        ("{url}", False),
        ("http://127.0.0.1:9/mcp/", False),
        ("https://127.0.0.1/mcp/", False),
        ("http://[127.0.0.1/mcp/", False),
        ("", False),
    ],
)
def test_only_a_move_within_the_origin_is_followed(location: str, followed: bool) -> None:
    async def main() -> None:
        async def moves(server: Server, writer: asyncio.StreamWriter, _: str) -> None:
            target = location.format(url=server.url)
            writer.write(
                f"HTTP/1.1 307 Moved\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n".encode()
            )

        async with serving(moves) as (server, link):
            async with link.exchange("POST", {}, b"{}") as response:
                assert link.moved(response) is followed
                await response.body()
            assert link.url == (f"{server.url}/" if followed else server.url)

    asyncio.run(main())


def test_a_move_to_where_no_request_can_go_is_the_servers_garbage() -> None:
    async def moves(_: Server, writer: asyncio.StreamWriter, __: str) -> None:
        writer.write("HTTP/1.1 307 Moved\r\nlocation: /dä\r\ncontent-length: 0\r\n\r\n".encode())

    async def main() -> None:
        async with serving(moves) as (server, link):
            async with link.exchange("POST", {}, b"{}") as response:
                assert link.moved(response)
            with pytest.raises(h11.RemoteProtocolError, match="wants sent what cannot be"):
                await post(link)
            assert len(server.requests) == 1

    asyncio.run(main())


def test_a_body_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http, "MAX_BODY_BYTES", 3)

    async def main() -> None:
        async with serving(plain) as (_, link):
            with pytest.raises(h11.RemoteProtocolError, match="longer than 3 bytes"):
                await post(link)

    asyncio.run(main())


@pytest.mark.parametrize("url", ["ftp://host/", "127.0.0.1:80/mcp", "http:///mcp"])
def test_another_kind_of_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no http or https URL"):
        HttpLink(url, {})
