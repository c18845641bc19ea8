# SPDX-License-Identifier: Apache-2.0
"""One full exchange of a client with a gateway on this machine: connect, list, call."""

from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from envkit.servers.pdf.library import SMALLEST, opened
from envkit.servers.pdf.page import laid_out

EXCHANGE_S = 60.0


async def exchange(port: int, token: str, folder: Path) -> None:
    """Do everything once that a trial does often; raises RuntimeError when a call fails."""
    (folder / "warm.txt").write_text("warm")
    (folder / "warm.pdf").write_bytes(SMALLEST)
    with opened(str(folder / "warm.pdf"), "") as document:
        laid_out(document, 0)  # here, so that its fonts are loaded before a fork
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=EXCHANGE_S) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp/", http_client=http)
        async with Client(transport, read_timeout_seconds=EXCHANGE_S) as client:
            await client.list_tools()
            for name, arguments in CALLS:
                result = await client.call_tool(name, arguments)
                if result.is_error:
                    raise RuntimeError(f"{name} failed while warming up: {result.content}")


CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("filesystem_server_list_files", {"path": "/"}),
    ("filesystem_server_read_text_file", {"file_path": "/warm.txt"}),
    ("pdf_server_read_pdf_pages", {"file_path": "/warm.pdf"}),
    ("code_execution_server_code_exec", {"code": "true"}),
)
