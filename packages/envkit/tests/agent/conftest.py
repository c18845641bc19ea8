# SPDX-License-Identifier: Apache-2.0
"""Servers on loopback: a real one in its own process, and one that goes wrong on request."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envkit.agent.mcp_client import Endpoint

TOKEN = "right-token"


@dataclass
class RealServer:
    """A running server process and where it answers."""

    process: subprocess.Popen[str]
    endpoint: Endpoint


@contextmanager
def start_real_server(*more: str) -> Iterator[RealServer]:
    script = Path(__file__).with_name("real_server.py")
    command = [sys.executable, "-W", "ignore", str(script), TOKEN, *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        yield RealServer(process, Endpoint(url=f"http://127.0.0.1:{port}/mcp", token=TOKEN))
        process.kill()


@pytest.fixture(scope="session")
def start_server() -> Callable[..., AbstractContextManager[RealServer]]:
    """``with start_server("--old") as server``: one of the flags that `real_server` takes."""
    return start_real_server


@pytest.fixture
def mortal_server() -> Iterator[RealServer]:
    """A server of the test's own, to be killed."""
    with start_real_server() as server:
        yield server


@pytest.fixture
def forgetful_server() -> Iterator[RealServer]:
    """A server that accepts its token for half a second."""
    with start_real_server("--life", "0.5") as server:
        yield server


@pytest.fixture(scope="module")
def real_server() -> Iterator[RealServer]:
    """A server that a whole module shares and nobody kills."""
    with start_real_server() as server:
        yield server


type Serve = Callable[..., AbstractAsyncContextManager[Endpoint]]


@pytest.fixture
def faulty_server() -> Serve:
    """``async with faulty_server(connect=…, call=…)``: which fault each of the two meets."""
    return serve_faulty


@asynccontextmanager
async def serve_faulty(connect: str = "fine", call: str = "fine") -> AsyncGenerator[Endpoint]:
    writers: list[asyncio.StreamWriter] = []
    asked: list[dict[str, Any]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while request := await read_request(reader, asked):
                calls = "tools/call" in (request.get("method"), request.get("answers"))
                fault = call if calls else connect
                await answer(writer, request, fault)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp/", token="s3cret")
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader, asked: list[dict[str, Any]]) -> dict[str, Any]:
    """The next message; a stream that is taken up stands for the last one."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.decode().lower().split("\r\n"):
        if line.startswith("content-length:"):
            body = await reader.readexactly(int(line.split(":")[1]))
            request = json.loads(body)
            request["headers"] = head.decode()
            asked.append(request)
            return request
        if line == "last-event-id: 7 é":
            return {**asked[-1], "method": "GET", "answers": asked[-1]["method"]}
    return {"method": "none"}


async def answer(writer: asyncio.StreamWriter, request: dict[str, Any], fault: str) -> None:
    body = json.dumps(reply(request, fault)).encode()
    match fault:
        case "hang":
            await asyncio.get_running_loop().create_future()
        case "close":
            writer.close()
        case "garbage":
            writer.write(b"\x00\xffSSH-2.0-not-http\r\n\r\n")
        case "cut":
            writer.write(head(200, len(body) + 1000) + body)
            await writer.drain()
            writer.close()
        case "drip":
            writer.write(head(200, 1 << 30))
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        case "html":
            page = b"<html>It works!</html>"
            writer.write(head(200, len(page), "text/html") + page)
        case "not json":
            writer.write(head(200, 9) + b"{not json")
        case "http 500" | "http 401" | "http 429" | "http 404":
            writer.write(head(int(fault[-3:]), 4) + b"oops")
        case "long event":
            done = reply(request, "fine")
            done["result"] = {"content": [{"type": "text", "text": "x" * (3 << 20)}]}
            event = b"event: message\ndata: " + json.dumps(done).encode() + b"\n\n"
            writer.write(head(200, len(event), "text/event-stream") + event)
        case "broken stream" if request["method"] != "GET":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            writer.write("id: 7 é\nretry: 1\ndata:\n\n".encode())
            await writer.drain()
            writer.close()
        case "broken stream":
            event = b"data: " + json.dumps(reply(request, "fine")).encode() + b"\n\n"
            writer.write(head(200, len(event), "text/event-stream") + event)
        case _ if "id" not in request:
            writer.write(head(202, 0))
        case _:
            writer.write(head(200, len(body)) + body)
    await writer.drain()


def head(status: int, length: int, kind: str = "application/json") -> bytes:
    return (
        f"HTTP/1.1 {status} Whatever\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


def reply(request: dict[str, Any], fault: str) -> dict[str, Any]:
    done = {"jsonrpc": "2.0", "id": request.get("id")}
    error = {"code": -32601, "message": "no such method"}
    if fault == "not rpc":
        return {"hello": "world"}
    if fault == "internal error":
        return {**done, "error": {"code": -32603, "message": "it broke inside"}}
    if fault == "unknown tool":
        return {**done, "error": {"code": -32602, "message": "Unknown tool: frob"}}
    if fault == "wrong result":
        return {**done, "result": {"content": "not a list"}}
    if fault == "lost":
        return {**done, "error": {"code": -32000, "message": "Connection closed"}}
    result = RESULTS.get(str(request.get("answers", request.get("method"))))
    if fault == "endless list" and request["method"] == "tools/list":
        return {**done, "result": {"tools": [], "nextCursor": f"after {request['id']}"}}
    if fault == "against its schema" and result:
        result = {**result, "structuredContent": {"seen": "yes"}}
    if fault == "endless schema" and request["method"] == "tools/list":
        look = {**RESULTS["tools/list"]["tools"][0], "outputSchema": {"$ref": "#"}}
        result = {"tools": [look]}
    if fault == "repeats headers" and result:
        result = {**result, "content": [{"type": "text", "text": request["headers"]}]}
    return {**done, "error": error} if result is None else {**done, "result": result}


RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "faulty", "version": "1"},
    },
    "tools/list": {
        "tools": [
            {
                "name": "look",
                "inputSchema": {
                    "type": "object",
                    "properties": {"where": {"type": "string", "x-mcp-header": "Where"}},
                },
                "outputSchema": {"properties": {"seen": {"type": "integer"}}},
            },
            {
                "name": "wrong",
                "inputSchema": {
                    "type": "object",
                    "properties": {"at": {"type": "number", "x-mcp-header": "not a token"}},
                },
            },
        ]
    },
    "tools/call": {
        "content": [{"type": "text", "text": "seen"}],
        "structuredContent": {"seen": 1},
    },
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {},
        "resultType": "complete",
    },
}
