# SPDX-License-Identifier: Apache-2.0
"""A Harbor environment between the guard and the provider, in which one fault strikes.

Contract: guard, classifier and Harbor see what a provider with that fault would show them, and
nothing else; before and after the strike every call goes to the provider as it came. Harbor loads
it by the import path that `order.layered` gives, as it does the guard's.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
from pathlib import Path
from typing import Any, ClassVar, Final, override

import orjson
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.utils.import_path import import_class

from envkit.agent.replay import FINAL_ANSWER
from envkit.preflight.chaos import clocks, hands, log
from envkit.preflight.chaos.choose import Strike
from envkit.preflight.chaos.order import STRIKE_ENV
from envkit.preflight.chaos.verifiers import SCRIPTS, verifies
from envkit.preflight.chaos.wire import SLOW_S

_PREFIX: Final = "struck__"
_RECORDS: Final = {"torn": b'{"number": 1, "started_at": ', "hollow": b'{"number": 1}'}
"""What is left of an attempt's record."""


class Layer(BaseEnvironment):
    """Mixed in before any provider's class; see `__getattr__`."""

    struck: ClassVar = False
    """In this process, which is one attempt's: a verifier that works twice is struck once."""

    def __init__(self, *args: Any, **more: Any) -> None:
        told = orjson.loads(os.environ[STRIKE_ENV])
        self.strike = Strike(**told["strike"])
        self.hang_s = float(told["hang_s"])
        self._log_path = Path(told["log"])
        super().__init__(*args, **more)  # pyright: ignore[reportUnknownMemberType]
        if (kind := self.due("record")) and self.is_agents():
            self._spoil_record(kind)

    def is_agents(self) -> bool:
        """Whether this is the agent's environment, not the verifier's."""
        return self.session_id.endswith("__env")

    def collects(self, source: str) -> bool:
        """Whether what the agent left is fetched from there; its logs are no part of that."""
        return self.is_agents() and source != "/logs/agent"

    def due(self, *phases: str) -> str:
        """The kind of fault that strikes in one of these phases, once; empty for none."""
        return self.strike.kind if self.strike.phase in phases and not Layer.struck else ""

    def strikes(self) -> None:
        """It strikes now, and not again; what is seen of it comes later."""
        Layer.struck = True

    def log(self, effect: str, *, took: bool = True) -> None:
        """It struck, and this was seen of it."""
        self.strikes()
        log.write(self._log_path, self.strike, effect, took=took)

    def die(self, number: signal.Signals) -> None:
        """Be killed, or stopped, as from outside."""
        hands.strike_self(number, self.log)

    def change_clock(self, kind: str) -> None:
        """Let a clock that this process reads be wrong from now on."""
        wrong_s = clocks.WRONG_S.get(kind)
        self.log(clocks.jump(self.hang_s + 1) if wrong_s is None else clocks.skew(wrong_s))

    async def meet(self, phase: str) -> None:
        """The faults that need no box of ours; the others are left to who knows them."""
        match self.due(phase):
            case "hang":
                self.log(f"{phase} never ends")
                await asyncio.Event().wait()
            case "raise":
                self.log(f"{phase} raises an error of somebody else's")
                raise RuntimeError("an error of the provider's own")
            case "timeout":
                self.log(f"{phase} raises a bare TimeoutError")
                raise TimeoutError("timed out")
            case "rate-limited":
                self.log(f"{phase} is refused")
                raise RuntimeError("429 Too Many Requests: too many sandboxes started; retry later")
            case "slow":
                self.log(f"{phase} begins {SLOW_S:g} s later")
                await asyncio.sleep(SLOW_S)
            case "clock-jump" | "wall-clock-back" | "wall-clock-ahead" as kind:
                self.change_clock(kind)
                await asyncio.sleep(0)  # what is due now comes first
            case "kill-trial":
                self.die(signal.SIGKILL)
            case _:
                pass

    @override
    async def start(self, force_build: bool) -> None:
        await self.meet("start" if self.is_agents() else "grade-start")
        await super().start(force_build)

    @override
    async def stop(self, delete: bool) -> None:
        await self.meet("stop" if self.is_agents() else "grade-stop")
        await super().stop(delete)
        if not self.is_agents() and self.due("record") in _RECORDS:
            self._tear_record()

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
        **more: Any,
    ) -> ExecResult:
        if not self.is_agents() and verifies(command) and (kind := self.due("verify")):
            if kind in SCRIPTS:
                command = SCRIPTS[kind]
                self.log(f"the verifier runs: {command}")
            else:
                command = await self.harm_verifier(kind, command)
        return await super().exec(
            command, cwd=cwd, env=env, timeout_sec=timeout_sec, user=user, **more
        )

    async def harm_verifier(self, kind: str, command: str) -> str:
        """What only some providers can; returns what the verifier is to run."""
        return command

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._meet_upload(target_path)
        await super().upload_file(source_path, target_path)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._meet_upload(target_dir)
        await super().upload_dir(source_dir, target_dir)

    async def _meet_upload(self, target: str) -> None:
        if self.is_agents() and target == FINAL_ANSWER:
            await self.meet("answer")
        if not self.is_agents() and not target.startswith("/tests"):
            await self.meet("carry")

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        if self.collects(source_dir):
            await self.meet("collect")
        if not self.is_agents() and source_dir == "/logs/verifier":
            await self.meet("reward")
        await super().download_dir(source_dir, target_dir)

    def _spoil_record(self, kind: str) -> None:
        """See that no attempt of this trial can be left, or none that can be read."""
        trial_dir = self.trial_paths.trial_dir
        if kind == "disk-full":
            (trial_dir / ".attempt.json.part").symlink_to("/dev/full")
            self.log("every byte of the record is refused with ENOSPC")

    def _tear_record(self) -> None:
        """Leave half of a record, or one without its fields, and die as a power cut has it."""
        record = self.trial_paths.trial_dir / "attempt.json"
        record.write_bytes(_RECORDS[self.strike.kind])
        self.die(signal.SIGKILL)


@functools.cache
def struck(provider: type[BaseEnvironment]) -> type[BaseEnvironment]:
    """The class of a provider with a fault in it; over our own boxes it reaches further."""
    from envkit.sandbox.local import LocalEnvironment

    if not issubclass(provider, LocalEnvironment):
        return _over(provider, Layer)
    from envkit.preflight.chaos.local import LocalLayer

    return _over(provider, LocalLayer)


def _over(provider: type[BaseEnvironment], layer: type[Layer]) -> type[BaseEnvironment]:
    name = f"Struck{provider.__name__}"
    made: Any = type(name, (layer, provider), {"__module__": __name__})
    return made


def __getattr__(name: str) -> type[BaseEnvironment]:
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, class_name = name.removeprefix(_PREFIX).partition("__over__")
    path = f"{module.replace('__dot__', '.')}:{class_name}"
    return struck(import_class(path, base=BaseEnvironment))
