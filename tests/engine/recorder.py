# SPDX-License-Identifier: Apache-2.0
"""A process between the agent's client and the engine that passes bytes on and writes them down.

``python recorder.py UPSTREAM FILE`` prints its port. Every request that was answered with status
200 becomes a line of FILE: path, body and answer as they went by. It imports nothing of envkit, so
what it saw is a witness of what the engine returned, whatever our client made of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

_HOP = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the engine returned to one request, read by nothing of ours."""

    request_id: str
    """Without the number of the try at its end."""
    prompt: list[int]
    ids: list[int]
    logprobs: list[float]


def seen(file: Path) -> Iterator[Seen]:
    """Every answer with sampled ids in a recording."""
    for line in file.read_text("utf-8").splitlines():
        went = json.loads(line)
        if went["path"] != "/inference/v1/generate":
            continue
        choices = [each["choices"][0] for each in _documents(went["answer"]) if each.get("choices")]
        body = json.loads(went["body"])
        yield Seen(
            request_id=body["request_id"].rpartition(".")[0],
            prompt=body["token_ids"],
            ids=[token for each in choices for token in each.get("token_ids") or ()],
            logprobs=[
                token["logprob"]
                for each in choices
                for token in (each.get("logprobs") or {}).get("content") or ()
            ],
        )


def _documents(answer: str) -> Iterator[dict[str, Any]]:
    """The JSON documents of an answer, streamed or not."""
    if not answer.lstrip().startswith("data:"):
        yield json.loads(answer)
        return
    for event in answer.split("\n\n"):
        data = event.strip().removeprefix("data:").strip()
        if data and data != "[DONE]":
            yield json.loads(data)


class Recorder:
    """Passes requests on to ``upstream``."""

    def __init__(self, upstream: str, file: Path) -> None:
        self._upstream = upstream
        self._file = file

    async def serve(self) -> None:
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        no_limit = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=no_limit, auto_decompress=False) as self._session:
            await asyncio.Event().wait()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in _HOP
        }
        url = f"{self._upstream}{request.rel_url}"
        heard = bytearray()
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP}
            said = web.StreamResponse(status=answer.status, headers=kept)
            await said.prepare(request)
            async for part in answer.content.iter_any():
                heard += part
                await said.write(part)
            if answer.status == 200:
                self._note(request.path, body, heard)
            await said.write_eof()
        return said

    def _note(self, path: str, body: bytes, answer: bytearray) -> None:
        line = {"path": path, "body": body.decode(), "answer": answer.decode()}
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    asyncio.run(Recorder(sys.argv[1].rstrip("/"), Path(sys.argv[2])).serve())
