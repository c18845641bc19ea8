# SPDX-License-Identifier: Apache-2.0
"""The same tools over standard input and output."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from mcp import Client, StdioServerParameters

from envkit.servers.config import GatewayConfig

from .conftest import WAIT_S, text_of

pytestmark = pytest.mark.integration

SCRIPT = """
import asyncio, os, sys
from pathlib import Path
from envkit.servers.command import LocalRunner
from envkit.servers.config import GatewayConfig, server_names
from envkit.servers.stdio import serve_stdio
root = Path(sys.argv[1])
config = GatewayConfig(
    root=root, apps_data=root, command_root=str(root), servers=server_names("pdf,fs,code"),
    command_env={"PATH": os.environ["PATH"]},
)
asyncio.run(serve_stdio(config, LocalRunner()))
"""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_lists_and_calls(config: GatewayConfig, mode: str) -> None:
    arguments = ["-c", SCRIPT, str(config.root)]
    server = StdioServerParameters(command=sys.executable, args=arguments)

    async def use():
        async with Client(server, read_timeout_seconds=WAIT_S, mode=mode) as client:
            tools = await client.list_tools()
            read = {"file_path": "/table.pdf"}
            noisy = {"code": "import os; os.write(1, b'to stdout'); os.write(2, b'to stderr')"}
            return tools, await asyncio.gather(
                client.call_tool("pdf_server_read_pdf_pages", read),
                client.call_tool("code_execution_server_code_exec", noisy),
            )

    tools, (page, code) = asyncio.run(use())
    assert len(tools.tools) >= 15
    assert "| Cloud | 1,204.5 | 1,398.2 |" in text_of(page)
    assert "to stdout" in text_of(code)


def test_garbage_lines_do_not_end_it_and_closing_does(config: GatewayConfig) -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
    ping += b'"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(config.root)],
        input=b"garbage\n\n{}\n\xff\xfe\n" + ping,
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert b'"protocolVersion":"2025-06-18"' in ended.stdout
