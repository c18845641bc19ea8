# SPDX-License-Identifier: Apache-2.0
"""Takes one call from name and arguments to a reply: find, recognise, parse, run, store, log.

`Desk.call` never raises for what a tool did: every failure is a reply. Only cancellation passes
through, and then the journal says whether the call may have had an effect.
"""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from envkit.servers import catalog
from envkit.servers.arguments import parse
from envkit.servers.child import ChildBudget, in_child
from envkit.servers.command import CommandRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.confine import rooted
from envkit.servers.contract import Done, Reply, ToolFault, failure, success
from envkit.servers.journal import Journal, digest
from envkit.servers.memory import Memory
from envkit.servers.pdf.shelf import Shelf
from envkit.servers.tool import CommandTool, Effect, FileTool, NotAtOnce, Tool, World

LOGGED_CHARS = 2000
CROWDED = "busy"
"""Code of a call that waited for others: who sends more than are worked on makes it so."""

type OnFault = Callable[[str, str], None]
"""Told of a tool and a code when a call failed and the caller did not make it fail."""
_log = logging.getLogger("envkit.servers")


class Desk:
    """One world's tools, its journal and its call log."""

    def __init__(
        self, config: GatewayConfig, runner: CommandRunner, on_fault: OnFault | None = None
    ) -> None:
        self.config = config
        self._on_fault = on_fault
        self.tools = catalog.offered(config)
        self._runner = runner
        self._journal = Journal(config.journal)
        self._memory = Memory()
        self._shelf = Shelf(config.parsed) if config.parsed else None
        self._slots = asyncio.Semaphore(config.limits.children)
        self._log = _open_log(config)

    def close(self) -> None:
        """Close the journal and the log."""
        self._journal.close()
        if self._log is not None:
            os.close(self._log)

    async def call(
        self, name: str, arguments: Mapping[str, object] | None, call_id: str = ""
    ) -> Reply:
        """One call; with a `call_id` it runs at most once and its reply is stored."""
        started = time.monotonic()
        call = digest(name, arguments)
        reply = await self._journal.known(call_id, call) if call_id else None
        replayed = reply is not None
        if reply is None:
            reply = await self._once(name, arguments, call_id, call)
        self._write_log(name, arguments, call_id, reply, time.monotonic() - started, replayed)
        return reply

    async def _once(
        self, name: str, arguments: Mapping[str, object] | None, call_id: str, call: str
    ) -> Reply:
        if not call_id:
            return await self._reply(name, arguments)
        self._journal.intend(call_id, call)
        try:
            reply = await self._reply(name, arguments)
        except BaseException:
            tool = self.tools.get(name)
            no_effect = tool is None or tool.effect is Effect.READ
            self._journal.abandon(call_id, had_no_effect=no_effect)
            raise
        self._journal.finish(call_id, reply)
        return reply

    async def _reply(self, name: str, arguments: Mapping[str, object] | None) -> Reply:
        try:
            tool = catalog.find(self.tools, name, read_only=self.config.read_only)
            return success(await self._run(tool, arguments))
        except ToolFault as fault:
            return self._failed(name, fault)
        except Exception as error:  # the boundary: whatever else goes wrong is the gateway's own
            return self._failed(name, _own_fault(name, error))

    def _failed(self, name: str, fault: ToolFault) -> Reply:
        if self._on_fault and fault.owner != "model" and fault.code != CROWDED:
            self._on_fault(name[:200], fault.code)
        return failure(fault)

    async def _run(self, tool: Tool, arguments: Mapping[str, object] | None) -> Done:
        asked = parse(tool.arguments, arguments)
        if isinstance(tool, CommandTool):
            return await tool.run(self._runner, self.config, asked)
        if tool.at_once:
            with contextlib.suppress(NotAtOnce):
                return self._at_once(tool, asked)
        limits = self.config.limits
        seconds = limits.document_s if tool.document else limits.file_s
        left = await self._slot(seconds)
        try:
            slow = "model" if getattr(asked, "regex", False) else "server"
            budget = ChildBudget(seconds=left, memory_mib=limits.child_memory_mib, slow=slow)
            done = await in_child(self._work(tool, asked, left), budget)
        finally:
            self._slots.release()
        self._memory.keep(done.remember)
        return done

    def _at_once(self, tool: FileTool, asked: object) -> Done:
        """What needs neither a parser nor time is answered here: a fork costs seven times as much.

        Raises:
            NotAtOnce: it does need them.
        """
        work = self._work(tool, asked, self.config.limits.file_s, at_once=True)
        return work(lambda: None)

    async def _slot(self, seconds: float) -> float:
        """Wait for a free child; returns the seconds left of the deadline."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise ToolFault(
                "busy",
                f"Too many calls are being worked on; this one waited {seconds:g} s.",
                fix="Send fewer calls at once, then try again.",
                retryable=True,
                owner="server",
            ) from None
        return seconds - (time.monotonic() - started)

    def _work(
        self, tool: FileTool, asked: object, seconds: float, *, at_once: bool = False
    ) -> Callable[..., Done]:
        config = self.config

        def work(starting: Callable[[], None]) -> Done:
            with rooted(config.root, alias=config.command_root) as root:
                world = World(
                    root=root,
                    text_chars=config.limits.text_chars,
                    seconds=seconds,
                    starting=starting,
                    known=self._memory,
                    shelf=self._shelf,
                    at_once=at_once,
                )
                return tool.run(world, asked)

        return work

    def _write_log(
        self,
        name: str,
        arguments: Mapping[str, object] | None,
        call_id: str,
        reply: Reply,
        seconds: float,
        replayed: bool,
    ) -> None:
        if self._log is None:
            return
        record = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "tool": name[:200],
            "call_id": call_id[:200],
            "ok": not reply.is_error,
            "code": reply.envelope["code"],
            "seconds": round(seconds, 4),
            "chars": sum(map(len, reply.texts)),
            "images": len(reply.images),
            "replayed": replayed,
            "arguments": json.dumps(arguments or {}, default=str)[:LOGGED_CHARS],
        }
        os.write(self._log, json.dumps(record).encode() + b"\n")


def _own_fault(name: str, error: Exception) -> ToolFault:
    _log.error("%s failed in the gateway", name[:200], exc_info=error)
    return ToolFault(
        "internal_error",
        f"The gateway failed ({type(error).__name__}: {error}).",
        fix="The same call may fail again; look at the state before trying.",
        owner="server",
        applied="unknown",
    )


def _open_log(config: GatewayConfig) -> int | None:
    if config.call_log is None:
        return None
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(config.call_log, flags, 0o600)
