# SPDX-License-Identifier: Apache-2.0
"""The agent of bar 5, a module of its own: what it imports, each of 550 trials imports again.

It waits for a round, makes the task's recorded calls, and tells what came of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, override

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities

from envkit.agent.mcp_client import Endpoint, ToolClient
from envkit.deadline import DeadlineExceeded
from envkit.sandbox.session import rest, turn

ROOT = Path(__file__).resolve().parents[2]
TASK = ROOT / "tasks" / "rail-margin"
SOCKET = "ENVKIT_BAR05"
TICK_S = 0.05


def recorded_calls() -> list[tuple[str, dict[str, Any]]]:
    """The task's own calls, without those that run code: they would measure Python's start."""
    lines = (TASK / "solution" / "calls.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    named = [(c["tool"], c["arguments"]) for c in calls if "tool" in c]
    return [call for call in named if not call[0].startswith("code_execution")]


@dataclass
class Done:
    """What one client did in one round."""

    latencies_s: list[float] = field(default_factory=list)
    stalls_ms: list[float] = field(default_factory=list)
    texts: str = ""
    """Digest of everything it was told."""
    error: str = ""
    timeout: bool = False
    cpu_s: float = 0.0
    """Of the client's process; of the bare one it stands on the first client."""


async def stalls(into: list[float]) -> None:
    """How much later than asked for this loop wakes."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(TICK_S)
        into.append(max(0.0, (time.monotonic() - before - TICK_S) * 1000))


type Call = Callable[[str, dict[str, Any]], Awaitable[str]]


async def make_calls(call: Call, done: Done) -> None:
    told = hashlib.sha256()
    for name, arguments in recorded_calls():
        before = time.monotonic()
        told.update((await call(name, arguments)).encode())
        done.latencies_s.append(time.monotonic() - before)
    done.texts = told.hexdigest()


class Loop(BaseAgent):
    """The agent of one trial: waits for a round, makes its calls, tells what came of it."""

    capabilities = AgentCapabilities(mcp_servers=True)

    @staticmethod
    @override
    def name() -> str:
        return "loop"

    @override
    def version(self) -> str:
        return "1"

    @override
    async def setup(self, environment: Any) -> None:
        pass

    @override
    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        endpoint = await environment.tool_endpoint()
        reader, writer = await asyncio.open_unix_connection(os.environ[SOCKET])
        hello = {"url": endpoint.url, "token": endpoint.token}
        writer.write(json.dumps(hello).encode() + b"\n")
        rest()
        while line := await reader.readline():
            done = await one_round(endpoint, watched=json.loads(line)["watched"])
            writer.write(json.dumps(vars(done)).encode() + b"\n")
            await writer.drain()


async def one_round(endpoint: Any, *, watched: bool) -> Done:
    done, before_s = Done(), time.process_time()
    clock = asyncio.create_task(stalls(done.stalls_ms)) if watched else None
    try:
        await turn(0)
        where = Endpoint(url=endpoint.url, token=endpoint.token)
        async with ToolClient.open(where) as client:
            await client.list_tools()

            async def call(name: str, arguments: dict[str, Any]) -> str:
                await turn(1 + len(done.latencies_s))
                result = await client.call(name, arguments)
                if not result.ok:
                    raise RuntimeError(result.text[:200])
                return result.text

            await make_calls(call, done)
    except DeadlineExceeded as error:
        done.error, done.timeout = str(error), True
    except Exception as error:
        done.error = f"{type(error).__name__}: {error}"
    rest()
    if clock:
        clock.cancel()
    done.cpu_s = time.process_time() - before_s
    return done
