# SPDX-License-Identifier: Apache-2.0
"""The layer over envkit's own boxes: signals, streams and limits; `served` has their gateways."""

from __future__ import annotations

import asyncio
import contextlib
import os
from functools import partial
from pathlib import Path
from typing import Any, Final, override

from envkit.agent.replay import FINAL_ANSWER
from envkit.preflight.chaos import hands, model, streams
from envkit.preflight.chaos.served import ServedLayer
from envkit.preflight.chaos.wire import NOISE
from envkit.sandbox.prepare import Prepared
from envkit.sandbox.spec import BoxSpec

_ROOM: Final = 8 << 20
"""Bytes that a starved verifier may still take: process 1 of its box, which the kernel does not
choose, must not be the one that finds no page."""
_TURNS: Final = 5
"""Of the fork server's loop: it sees a box's end in one of them. A box that is closed sooner ends
like any other, which nobody can tell and which costs nothing."""


class LocalLayer(ServedLayer):
    """See the module."""

    # --- boxes come up ---

    @override
    def _spec(self, prepared: Prepared) -> BoxSpec:
        spec = super()._spec(prepared)
        if self.due("start" if self.is_agents() else "grade-start") != "garbage":
            return spec
        noise = self.trial_paths.trial_dir / "noise"
        noise.write_bytes(NOISE)
        self.log("its root is a file of noise")
        return BoxSpec.from_dict({**spec.to_dict(), "root": str(noise)})

    @override
    async def _ask(self, op: str, fds: list[int] | None = None, **arguments: Any) -> dict[str, Any]:
        answer = await super()._ask(op, fds, **arguments)
        started = "start" if self.is_agents() else "grade-start"
        if op == "open" and self.due(started) == "kill-box":
            await self._kill_box()
        return answer

    # --- files in and out ---

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        kind = self.due("answer")
        if self.is_agents() and target_path == FINAL_ANSWER and kind in model.DEEDS:
            await self._act_as_the_model(kind)
        await super().upload_file(source_path, target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        full = self.collects(source_dir) and self.due("collect") == "disk-full"
        if full:
            self.log("no file of the host takes a byte")
        with streams.full_disk() if full else contextlib.nullcontext():
            await super().download_dir(source_dir, target_dir)

    @override
    async def _transfer(self, what: str, path: str, fds: list[int]) -> int:
        kind = self.due(self._phase_of(what, path))
        if kind == "kill-box":
            fds = [os.dup(fd) for fd in fds]  # the caller takes them for sent, and closes its own
            try:
                await self._kill_box()
                return await super()._transfer(what, path, fds)
            finally:
                for fd in fds:
                    os.close(fd)
        if kind in streams.KINDS:
            self.strikes()
            say = partial(self._say_of_stream, path)
            flow = streams.flow(kind, self.hang_s, say)
            return await streams.redirect(super()._transfer, what, path, fds[0], flow)
        return await super()._transfer(what, path, fds)

    def _say_of_stream(self, path: str, became: str) -> None:
        self.log(f"the stream of {path}: {became}")

    def _phase_of(self, what: str, path: str) -> str:
        agents = self.is_agents()
        match what:
            case "unpack" if agents and path == str(Path(FINAL_ANSWER).parent):
                return "answer"
            case "unpack" if not agents and not path.startswith("/tests"):
                return "carry"
            case "pack" if self.collects(path):
                return "collect"
            case "pack" if not agents and path == "/logs/verifier":
                return "reward"
            case _:
                return ""

    # --- the verifier and the end ---

    @override
    async def harm_verifier(self, kind: str, command: str) -> str:
        parts = await self._parts()
        match kind:
            case "out-of-memory":
                groups = parts["box"]["groups"]
                self._starve(groups, hands.killed_in(groups), room=_ROOM)
                return "exec tail /dev/zero"  # keeps all of a line that does not end
            case "disk-full":
                self.log(hands.fill(self._workspace()))
            case "kill-box":
                self._watching = asyncio.create_task(self._kill_box())
                return "sleep 1000"
            case "pause":
                self._watching = asyncio.create_task(self._pause_in(parts["box"]["pid"]))
                return f"kill -STOP $$; {command}"
            case _:
                raise AssertionError(kind)
        return command

    async def _pause_in(self, process_1: int) -> None:
        """Let the verifier, which stopped itself, go on."""
        self.log(await hands.pause(await hands.stopped_in(process_1)))

    def _workspace(self) -> Path:
        """Where the fork server mounts what this box writes, in the namespace it shares with us."""
        assert self._session is not None
        stage = self._session.stage
        run, trial = stage.name.rpartition("-")[2], self.strike.trial
        return stage / "w" / f"{run}-{trial}-{self._name}"

    @override
    async def stop(self, delete: bool) -> None:
        kind = self.due("stop" if self.is_agents() else "grade-stop")
        if kind == "kill-box" and self._name:
            await self._kill_box()
            for _ in range(_TURNS):
                await super()._ask("usage")
        if kind == "garbage":
            self._bend_channel()
            self.log("the answer lacks what was used")
        await super().stop(delete)
