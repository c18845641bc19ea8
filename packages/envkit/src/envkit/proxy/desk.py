# SPDX-License-Identifier: Apache-2.0
"""Requests of clients, in terms of conversations: answer one, end one, end all.

Contract: an answer enters its stream before the client has it; a client that goes away before it is
there ends the request at the engine too, and the same request goes on from there. A conversation
that ended is stored before its client is told so; one that could not be stored stays open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from envkit.fault import EnvkitError
from envkit.proxy.branch import Branch
from envkit.proxy.conversation import Conversation
from envkit.proxy.crowd import Crowd
from envkit.proxy.keep import Keep
from envkit.proxy.rows import Whose, rows_of
from envkit.proxy.types import Answered, Asked, Ending, NotServed
from envkit.trajectory.types import Trajectory

LOOK_S: Final = 1.0
"""Between looks for conversations that are idle."""

_log = logging.getLogger("envkit.proxy")


@dataclass(slots=True, eq=False, kw_only=True)
class Desk:
    """Of one server."""

    crowd: Crowd
    keep: Keep
    whose: Whose
    idle_s: float
    stored: int = 0
    """Rows, so far."""

    async def answer(self, asked: Asked, name: str = "") -> Answered:
        """Answer a request of the conversation ``name``, or of the one it goes on from.

        Raises:
            NotServed, EnvkitError: as `Crowd.place` and `Branch.answer`.
        """
        served = self.crowd.mouth.engine.identity.model
        if asked.model not in ("", served):
            raise NotServed(404, "model_not_found", f"{asked.model!r} is not served: {served} is")
        home, branch = self.crowd.place(asked, name)
        try:
            said, sampled = await branch.answer(asked)
        finally:
            home.touched = self.crowd.mouth.clock()
        decode = self.crowd.mouth.voice.template.decode
        pieces = [decode([each]) for each in sampled.token_ids.tolist()] if asked.logprobs else ()
        return Answered(
            said=said,
            sampled=sampled,
            conversation=home.name,
            row=branch.row,
            mark=branch.mark,
            pieces=tuple(pieces),
            prompt_ids=_prompt(branch, sampled.prompt_tokens) if asked.token_ids else (),
        )

    async def end(self, name: str, ending: Ending) -> list[Trajectory]:
        """End a conversation and store it; its rows.

        Raises:
            NotServed: there is none of this name, or an answer of it is under way.
            OSError, BrokenInvariant: it could not be stored, and is open still.
        """
        home = self.crowd.open.get(name)
        if home is None or home.ending:
            code = "ended" if home or self.keep.has(name) else "not_found"
            status = 409 if code == "ended" else 404
            raise NotServed(status, code, f"no conversation {name} is open")
        if home.busy:
            raise NotServed(409, "busy", f"an answer of {name} is under way")
        return await self._end(home, ending)

    async def end_idle(self) -> None:
        """End what is idle, now and then, until cancelled."""
        while True:
            await asyncio.sleep(min(LOOK_S, self.idle_s))
            for home in self.crowd.idle(self.idle_s):
                await self._tried(home, f"nothing was asked for {self.idle_s:g} s")

    async def end_all(self, why: str) -> list[str]:
        """End all that is open; what of it could not be stored, a line each."""
        homes = [each for each in self.crowd.open.values() if not each.ending]
        lines = [await self._tried(each, why) for each in homes]
        return [each for each in lines if each]

    async def _tried(self, home: Conversation, why: str) -> str:
        try:
            await self._end(home, Ending(), why)
        except (OSError, EnvkitError) as error:
            _log.warning("%s is not stored: %s", home.name, error)
            home.touched = self.crowd.mouth.clock()
            return f"{home.name} is not stored: {error}"
        return ""

    async def _end(self, home: Conversation, ending: Ending, gone: str = "") -> list[Trajectory]:
        home.ending = True
        try:
            rows = rows_of(home, ending, self.whose, gone)
            await self.keep.add(rows)
        except BaseException:
            home.ending = False
            raise
        del self.crowd.open[home.name]
        self.stored += len(rows)
        return rows


def _prompt(branch: Branch, count: int) -> tuple[int, ...]:
    return tuple(branch.history.stream.prompt.ids[:count])


async def unless_gone[T](work: Awaitable[T], gone: Callable[[], Awaitable[None]]) -> T | None:
    """What ``work`` comes to; None, and it is cancelled, where ``gone`` comes back first."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone())
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait((task,))
        return None
    finally:
        task.cancel()
        leaving.cancel()
