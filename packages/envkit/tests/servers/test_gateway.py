# SPDX-License-Identifier: Apache-2.0
"""The gateway over real sockets: who gets in, what a broken peer can do, forks and restarts."""

from __future__ import annotations

import asyncio
import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing

import httpx2
import pytest

from envkit.servers.command import LocalRunner
from envkit.servers.config import GatewayConfig, ToolLimits
from envkit.servers.gateway import serve

from .conftest import TOKEN, WAIT_S, Start, children_of, connected, is_running, text_of, until
from .documents import slow_pdf

pytestmark = pytest.mark.integration
LIST = "filesystem_server_list_files"


def test_importing_the_package_and_its_light_parts_does_not_import_mcp() -> None:
    code = "import sys, envkit.servers.config, envkit.servers.command; print('mcp' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert answer.stdout == b"False\n"


def test_warming_up_leaves_one_thread(warmed: None) -> None:
    assert threading.active_count() == 1
    assert len(os.listdir("/proc/self/task")) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_three_forked_gateways_serve_at_once(start: Start, mode: str) -> None:
    async def use(served):
        async with connected(served, mode=mode) as client:
            tools = await client.list_tools()
            results = await asyncio.gather(*(client.call_tool(LIST, {}) for _ in range(5)))
            return len(tools.tools), [text_of(result) for result in results]

    async def all_three():
        return await asyncio.gather(*map(use, servers))

    servers = [start() for _ in range(3)]
    for count, texts in asyncio.run(all_three()):
        assert count >= 15
        assert all("'table.pdf' (application/pdf file)" in text for text in texts)


def test_a_gateway_works_when_its_image_may_not_be_read(start: Start, tmp_path) -> None:
    """The sandbox makes it undumpable, which closes most of /proc/self to others."""
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    try:
        served = start()
    finally:
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)

    async def use():
        async with connected(served) as client:
            write = {"file_path": "/new.txt", "content": "x"}
            yield await client.call_tool("filesystem_server_write_file", write)
            read = {"file_path": "/table.pdf"}
            yield await client.call_tool("pdf_server_read_pdf_pages", read)

    async def both():
        return [result.is_error async for result in use()]

    assert asyncio.run(both()) == [False, False]


def _status(served, path: str = "/mcp/", **headers: str) -> int:
    sent = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json", **headers}
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=WAIT_S)) as peer:
        peer.request("GET", path, headers={name: value for name, value in sent.items() if value})
        return peer.getresponse().status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"bearer {TOKEN}"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "localhost:99999999"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost"}, 200),
    ],
)
def test_only_a_local_peer_with_the_token_gets_in(start: Start, headers, status) -> None:
    assert _status(start(), "/apps", **headers) == status


def test_an_empty_token_lets_nobody_in(start: Start) -> None:
    assert _status(start(token=""), "/apps", Authorization="Bearer ") == 401


def test_health_needs_no_token_but_a_local_host(start: Start) -> None:
    served = start()
    assert _status(served, "/health", Authorization="") == 200
    assert _status(served, "/health", Host="evil.example") == 421


def test_the_agent_socket_does_not_know_the_data_routes(start: Start) -> None:
    served = start()
    assert _status(served, "/data/snapshot") == 404
    assert _status(served, "/data/populate") == 404


def test_data_is_refused_on_a_network_socket(config: GatewayConfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as two:
        running = serve(config, LocalRunner(), mcp_socket=one, data_socket=two)
        with pytest.raises(ValueError, match="Unix socket"):
            asyncio.run(running)


GARBAGE = [
    b"\x00\xff\xfe garbage\r\n\r\n",
    b"GET /mcp/ HTTP/9.9\r\n\r\n",
    b"POST /mcp/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /mcp/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    b"A" * 200_000,
]


def test_garbage_does_not_stop_the_gateway(start: Start) -> None:
    served = start()
    for data in GARBAGE:
        with socket.create_connection(("127.0.0.1", served.port), timeout=WAIT_S) as peer:
            peer.settimeout(WAIT_S)
            try:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                peer.recv(1000)
            except OSError:
                pass
    assert _status(served, "/health") == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1,"method":"x"}',
     b"[" * 100_000, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}'],
)  # fmt: skip
def test_garbage_messages_get_an_answer(start: Start, body: bytes) -> None:
    served = start()
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    answer = httpx2.post(served.url, content=body, headers=headers, timeout=WAIT_S)
    assert 400 <= answer.status_code < 500
    assert _status(served, "/health") == 200


def test_a_hung_document_delays_no_other_call(start: Start, root) -> None:
    slow_pdf(root / "slow.pdf")
    served = start(limits=ToolLimits(document_s=3, file_s=3))

    async def both():
        async with connected(served) as client:
            read = {"file_path": "/slow.pdf"}
            slow = asyncio.create_task(client.call_tool("pdf_server_read_pdf_pages", read))
            await asyncio.sleep(0.3)
            seconds = []
            while not slow.done():
                began = time.monotonic()
                assert not (await client.call_tool(LIST, {})).is_error
                seconds.append(time.monotonic() - began)
            return await slow, seconds

    result, seconds = asyncio.run(both())
    assert result.is_error
    assert result.structured_content["code"] == "deadline_exceeded"
    assert len(seconds) > 3
    assert max(seconds) < 1.5


def test_sigterm_ends_it_although_a_call_hangs(start: Start, root) -> None:
    slow_pdf(root / "slow.pdf")
    served = start()

    async def leave_hanging():
        async with connected(served) as client:
            read = {"file_path": "/slow.pdf"}
            call = asyncio.create_task(client.call_tool("pdf_server_read_pdf_pages", read))
            await asyncio.sleep(0.3)
            code = await asyncio.get_running_loop().run_in_executor(None, served.stop)
            call.cancel()
            return code

    try:
        code = asyncio.run(leave_hanging())
    except BaseExceptionGroup:
        code = 0  # the client's own way of saying that its server is gone
    assert code == 0


def test_a_killed_gateway_leaves_no_reader_behind(start: Start, root) -> None:
    slow_pdf(root / "slow.pdf")
    served = start()

    async def kill_while_reading():
        async with connected(served) as client:
            read = {"file_path": "/slow.pdf"}
            call = asyncio.create_task(client.call_tool("pdf_server_read_pdf_pages", read))
            await until(lambda: children_of(served.pid))
            readers = children_of(served.pid)
            os.kill(served.pid, signal.SIGKILL)
            call.cancel()
            await until(lambda: not any(map(is_running, readers)))

    asyncio.run(kill_while_reading())


def test_a_resent_call_id_survives_a_restart(start: Start, root, tmp_path) -> None:
    journal = tmp_path / "journal.jsonl"
    write = {"file_path": "/once.txt", "content": "one"}

    async def send(served):
        async with connected(served) as client:
            return await client.call_tool(
                "filesystem_server_write_file", write, meta={"envkit/call_id": "call-1"}
            )

    first = start(journal=journal)
    before = asyncio.run(send(first))
    assert first.stop(signal.SIGKILL) == -9
    (root / "once.txt").write_text("changed meanwhile")
    after = asyncio.run(send(start(journal=journal)))
    assert not before.is_error
    assert after.structured_content == before.structured_content
    assert (root / "once.txt").read_text() == "changed meanwhile"


def test_a_call_interrupted_by_a_kill_has_an_unknown_outcome(start: Start, tmp_path) -> None:
    journal = tmp_path / "journal.jsonl"
    call = ("code_execution_server_code_exec", {"code": "sleep 30"})
    meta = {"envkit/call_id": "call-2"}

    async def interrupt(served):
        async with connected(served) as client:
            task = asyncio.create_task(client.call_tool(*call, meta=meta))
            await until(lambda: journal.exists() and b"intent" in journal.read_bytes())
            os.kill(served.pid, signal.SIGKILL)
            task.cancel()

    async def again(served):
        async with connected(served) as client:
            return await client.call_tool(*call, meta=meta)

    asyncio.run(interrupt(start(journal=journal)))
    result = asyncio.run(again(start(journal=journal)))
    assert result.is_error
    assert result.structured_content["code"] == "outcome_unknown"


def test_a_read_only_gateway_lists_and_runs_nothing_that_changes(start: Start, root) -> None:
    served = start(read_only=True)

    async def use():
        async with connected(served) as client:
            tools = (await client.list_tools()).tools
            write = {"file_path": "/new.txt", "content": "x"}
            return tools, await client.call_tool("filesystem_server_write_file", write)

    tools, result = asyncio.run(use())
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert result.structured_content["code"] == "read_only"
    assert not (root / "new.txt").exists()


def test_the_call_log_has_one_line_a_call(start: Start, tmp_path) -> None:
    log = tmp_path / "calls.jsonl"
    served = start(call_log=log)

    async def use():
        async with connected(served) as client:
            await client.call_tool(LIST, {}, meta={"envkit/call_id": "a"})
            await client.call_tool(LIST, {}, meta={"envkit/call_id": "a"})
            await client.call_tool(LIST, {"path": "/none"})

    asyncio.run(use())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["code"] for line in lines] == ["ok", "ok", "not_found"]
    assert [line["replayed"] for line in lines] == [False, True, False]
    assert all(line["tool"] == LIST and line["seconds"] >= 0 for line in lines)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_the_client_gives_up_is_killed(start: Start, root, mode: str) -> None:
    served = start()
    call = ("code_execution_server_code_exec", {"code": "echo $$ > pid.txt; exec sleep 30"})

    async def give_up():
        async with connected(served, mode=mode) as client:
            task = asyncio.create_task(client.call_tool(*call))
            mark = root / "pid.txt"
            await until(lambda: mark.exists() and mark.read_text().strip())
            pid = int(mark.read_text())
            assert is_running(pid)
            task.cancel()
            await until(lambda: not is_running(pid))
            assert not (await client.call_tool(LIST, {})).is_error

    asyncio.run(give_up())


def test_cancelling_the_server_stops_it_quietly(config: GatewayConfig, capfd) -> None:
    async def run_and_cancel():
        with socket.create_server(("127.0.0.1", 0)) as mcp:
            task = asyncio.create_task(
                serve(config, LocalRunner(), mcp_socket=mcp, data_socket=None)
            )
            await asyncio.sleep(0.1)
            immediate = mcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled() and immediate

    assert asyncio.run(asyncio.wait_for(run_and_cancel(), WAIT_S))
    assert capfd.readouterr().err == ""
