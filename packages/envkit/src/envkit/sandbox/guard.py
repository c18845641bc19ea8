# SPDX-License-Identifier: Apache-2.0
"""Deadlines and an honest ledger around any Harbor environment.

Contract: every start, exec, look, transfer and stop has a deadline of ours. A bare ``TimeoutError``
never leaves: Harbor would take it for the agent's. ``stop`` never raises, so it never costs a
reward. What failed stands in the ledger even where Harbor goes on without a word, because an
artifact that was lost on the way must not become a reward of 0.

``guard(cls)`` makes the guarded class; Harbor loads it by the import path that ``import_path``
gives, since this module answers for any ``module:Class`` it is asked for.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.utils.import_path import import_class

from envkit.deadline import within
from envkit.fault import (
    EnvkitError,
    SandboxError,
    SandboxStartFailed,
    TransferFailed,
    VerifierCrashed,
)
from envkit.pace import STARTS_PER_S, Pace
from envkit.sandbox.canary import SEARCH_S, Canary
from envkit.sandbox.ledger import ledger

_PREFIX: Final = "guarded__"
_PROBE_S: Final = 20
_GRACE_S: Final = 15.0
"""For a provider to kill a command at the limit it was given, and to say so."""

_KILLED: Final = {128 + n for n in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM)}
"""What a shell says of itself or its last command when a signal ended it."""

_starts: Final = Pace(STARTS_PER_S)


class Guarded(BaseEnvironment):
    """Mixed in before a provider's class; see `guard`."""

    _started: bool = False

    @override
    async def start(self, force_build: bool) -> None:
        await _starts.wait()
        seconds = min(ledger().budgets.start_s, self.task_env_config.build_timeout_sec)
        await self._noted("start", seconds, super().start(force_build), SandboxStartFailed)
        self._started = True
        if not ledger().grading():
            ledger().enter("setup")
            if canary := ledger().canary:
                canary.arrived(await self._for_canary(canary.arrive()))

    async def before_agent(self) -> None:
        """The agent acts next: it must find nothing of ours."""
        if canary := ledger().canary:
            await self._search(canary, canary.hide())

    @override
    async def stop(self, delete: bool) -> None:
        canary, started, self._started = ledger().canary, self._started, False
        if canary and started and canary.out:  # its agent never came to act
            await self._search(canary, canary.hide())
        elif canary and started and not ledger().invalid():
            await self._search(canary, canary.leave())
        with ledger().during("stop"):
            try:
                await within("stop", ledger().budgets.stop_s, super().stop(delete))
            except Exception as error:
                self._note(error, SandboxError)
                self.logger.warning("teardown failed: %s", error)

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
        op, seconds = self._exec_budget()
        seconds = timeout_sec + _GRACE_S if timeout_sec else seconds
        work = super().exec(command, cwd=cwd, env=env, timeout_sec=timeout_sec, user=user, **more)
        done = await self._noted(op, seconds, work, SandboxError)
        if ledger().grading() and done.return_code in _KILLED:
            ledger().note(VerifierCrashed(f"the verifier was killed: status {done.return_code}"))
        return done

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._carried(super().upload_file(source_path, target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._carried(super().upload_dir(source_dir, target_dir))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await self._fetched(source_path, super().download_file(source_path, target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await self._fetched(source_dir, super().download_dir(source_dir, target_dir))

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        return await self._carried(super().is_dir(path, user))

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        return await self._carried(super().is_file(path, user))

    @override
    async def ensure_dirs(self, dirs: Any, *, chmod: bool = True) -> ExecResult | None:
        return await self._carried(super().ensure_dirs(dirs, chmod=chmod))

    @override
    async def empty_dirs(self, dirs: Any, *, chmod: bool = True) -> ExecResult | None:
        return await self._carried(super().empty_dirs(dirs, chmod=chmod))

    async def _search(self, canary: Canary, command: str) -> None:
        for fault in canary.read(await self._for_canary(command)):
            ledger().note(fault)

    async def _for_canary(self, command: str) -> str:
        """What a command of the canary's printed; a box that is dead is told by who needs it."""
        try:
            done = await within("canary", SEARCH_S, super().exec(command))
        except Exception as error:
            self.logger.warning("not searched for other trials' marks: %s", error)
            return ""
        return done.stdout or ""

    def _exec_budget(self) -> tuple[str, float]:
        """Name and seconds of a command without a limit of its own; the verifier's is one too."""
        budgets = ledger().budgets
        if ledger().grading():
            return "verify", budgets.verify_s
        return "exec", budgets.exec_s

    async def _carried[T](self, work: Awaitable[T]) -> T:
        return await self._noted("transfer", ledger().budgets.transfer_s, work, TransferFailed)

    async def _fetched(self, source: str, work: Awaitable[None]) -> None:
        """A file that is not there is for the caller to judge; a lost one is a fault."""
        try:
            await within("transfer", ledger().budgets.transfer_s, work)
        except FileNotFoundError:
            raise
        except Exception as error:
            if not isinstance(error, EnvkitError) and await self._is_missing(source):
                raise
            raise self._note(error, TransferFailed) from error

    async def _is_missing(self, source: str) -> bool:
        try:
            there = await within("exec", _PROBE_S, self._exists(source))
        except Exception:
            return False
        return not there

    async def _exists(self, source: str) -> bool:
        return await super().is_dir(source) or await super().is_file(source)

    async def _noted[T](
        self, op: str, seconds: float, work: Awaitable[T], stands_for: type[EnvkitError]
    ) -> T:
        try:
            return await within(op, seconds, work)
        except Exception as error:
            raise self._note(error, stands_for) from error

    def _note(self, error: Exception, stands_for: type[EnvkitError]) -> EnvkitError:
        """Enter it in the ledger, under our name where the provider's says nothing."""
        if not isinstance(error, EnvkitError):
            error = stands_for(f"{type(error).__name__}: {error}")
        ledger().note(error)
        return error


@functools.cache
def guard(provider: type[BaseEnvironment]) -> type[BaseEnvironment]:
    """The guarded version of a provider's class."""
    return type(f"Guarded{provider.__name__}", (Guarded, provider), {"__module__": __name__})


def import_path(provider: str) -> str:
    """The import path under which Harbor finds the guarded version of ``module:Class``."""
    module, _, name = provider.partition(":")
    return f"{__name__}:{_PREFIX}{module.replace('.', '__dot__')}__class__{name}"


def __getattr__(name: str) -> type[BaseEnvironment]:
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, class_name = name.removeprefix(_PREFIX).partition("__class__")
    return guard(
        import_class(f"{module.replace('__dot__', '.')}:{class_name}", base=BaseEnvironment)
    )
