# SPDX-License-Identifier: Apache-2.0
"""/data/populate and /data/snapshot: a world's files in and out as one tar stream.

POST /data/populate takes a tar (also gzip, bzip2, xz) of `filesystem/` and `.apps_data/`, or of
one of them with `?subsystem=`; POST or GET /data/snapshot answers with a tar of both. The work
runs in a killable child, streamed, with a deadline; a snapshot that fails half-way ends the
connection instead of looking complete.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from envkit.servers.archive import NAMES, pack, unpack
from envkit.servers.child import ChildBudget, in_child
from envkit.servers.config import GatewayConfig
from envkit.servers.confine import Root, rooted
from envkit.servers.contract import Done, ToolFault
from envkit.servers.fds import read_some, write_all

CONFLICT, BAD_REQUEST, UNAVAILABLE = 409, 400, 503


def data_routes(config: GatewayConfig) -> list[Route]:
    """The two routes over this world's roots."""
    roots: dict[str, Path] = dict(zip(NAMES, (config.root, config.apps_data), strict=True))
    budget = ChildBudget(
        seconds=config.limits.transfer_s, memory_mib=config.limits.child_memory_mib
    )

    async def populate(request: Request) -> Response:
        subsystem = request.query_params.get("subsystem", "")
        if subsystem and subsystem not in roots:
            known = ", ".join(roots)
            return _refused(f"unknown subsystem {subsystem!r}; known: {known}", BAD_REQUEST)
        chosen = {subsystem: roots[subsystem]} if subsystem else roots
        try:
            done = await _populate(chosen, request.stream(), budget)
        except ToolFault as fault:
            status = UNAVAILABLE if fault.owner == "server" else BAD_REQUEST
            return _refused(fault.line(), status)
        return JSONResponse({"files": done.counts["files"], "did": done.did})

    async def snapshot(_request: Request) -> Response:
        return StreamingResponse(_snapshot(roots, budget), media_type="application/x-tar")

    return [
        Route("/data/populate", populate, methods=["POST"]),
        Route("/data/snapshot", snapshot, methods=["GET", "POST"]),
    ]


def _refused(message: str, status: int) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status)


def _opened(roots: Mapping[str, Path], stack: ExitStack) -> dict[str, Root]:
    return {name: stack.enter_context(rooted(path)) for name, path in roots.items()}


async def _populate(
    roots: Mapping[str, Path], body: AsyncIterator[bytes], budget: ChildBudget
) -> Done:
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)

    def work(starting: Callable[[], None]) -> Done:
        with ExitStack() as stack, os.fdopen(read_fd, "rb") as source:
            count = unpack(_opened(roots, stack), source, starting)
        return Done(did=f"Placed {count} files.", counts={"files": count})

    child = asyncio.create_task(in_child(work, budget, keep=(read_fd,)))
    await asyncio.sleep(0)  # the child is forked before its end of the pipe is closed here
    os.close(read_fd)
    os.set_blocking(write_fd, False)
    try:
        with suppress(BrokenPipeError):
            async for piece in body:
                await write_all(write_fd, piece)
    except BaseException:
        child.cancel()
        raise
    finally:
        os.close(write_fd)
    return await child


async def _snapshot(roots: Mapping[str, Path], budget: ChildBudget) -> AsyncGenerator[bytes]:
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)

    def work(_starting: Callable[[], None]) -> Done:
        with ExitStack() as stack, os.fdopen(write_fd, "wb") as out:
            count = pack(_opened(roots, stack), out)
        return Done(did=f"Packed {count} files.", counts={"files": count})

    child = asyncio.create_task(in_child(work, budget, keep=(write_fd,)))
    await asyncio.sleep(0)
    os.close(write_fd)
    os.set_blocking(read_fd, False)
    try:
        while piece := await read_some(read_fd):
            yield piece
        await child
    finally:
        child.cancel()
        os.close(read_fd)
