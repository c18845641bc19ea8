# SPDX-License-Identifier: Apache-2.0
"""The guard around a provider that is not ours: one that hangs, raises and lies on request."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths
from harbor.utils.import_path import import_class

from envkit.deadline import Budgets, DeadlineExceeded
from envkit.fault import Owner, Phase, SandboxStartFailed, TransferFailed
from envkit.sandbox import guard, ledger

type Run = Callable[[Coroutine[Any, Any, Any]], Any]
type Trouble = Callable[[], Coroutine[Any, Any, Any]]

TIGHT = Budgets(start_s=5, stop_s=5, exec_s=5, transfer_s=5, verify_s=7)


async def hang() -> None:
    await asyncio.Event().wait()


async def ignore_a_cancellation() -> None:
    """Swallows the first; obeys the second, or the loop could never close."""
    with contextlib.suppress(asyncio.CancelledError):
        await hang()
    await hang()


def raising(error: BaseException) -> Trouble:
    async def trouble() -> None:
        raise error

    return trouble


class Provider(BaseEnvironment):
    """A provider whose operations do what ``trouble`` says."""

    trouble: dict[str, Trouble]
    files: set[str]

    @staticmethod
    def type() -> str:
        return "of-somebody-else"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        pass

    async def _do(self, op: str) -> None:
        if op in self.trouble:
            await self.trouble[op]()

    async def start(self, force_build: bool) -> None:
        await self._do("start")

    async def stop(self, delete: bool) -> None:
        await self._do("stop")

    async def exec(self, command: str, **_: Any) -> ExecResult:
        await self._do("exec")
        return ExecResult(stdout="done", stderr="", return_code=0)

    async def upload_file(self, source_path: Any, target_path: str) -> None:
        await self._do("upload")

    async def upload_dir(self, source_dir: Any, target_dir: str) -> None:
        await self._do("upload")

    async def download_file(self, source_path: str, target_path: Any) -> None:
        await self._do("download")

    async def download_dir(self, source_dir: str, target_dir: Any) -> None:
        await self._do("download")

    async def is_dir(self, path: str, user: Any = None) -> bool:
        return False

    async def is_file(self, path: str, user: Any = None) -> bool:
        return path in self.files


@pytest.fixture
def guarded(tmp_path: Path) -> Callable[..., BaseEnvironment]:
    def make(files: set[str] | None = None, **trouble: Trouble) -> BaseEnvironment:
        ledger.begin(budgets=TIGHT)
        environment = guard.guard(Provider)(
            environment_dir=tmp_path,
            environment_name="test",
            session_id="test__env",
            trial_paths=TrialPaths(trial_dir=tmp_path / "trial"),
            task_env_config=EnvironmentConfig(),
            logger=logging.getLogger("test"),
        )
        environment.trouble = trouble  # pyright: ignore[reportAttributeAccessIssue]
        environment.files = files or set()  # pyright: ignore[reportAttributeAccessIssue]
        return environment

    return make


OPERATIONS: dict[str, Callable[[BaseEnvironment], Coroutine[Any, Any, Any]]] = {
    "start": lambda env: env.start(force_build=False),
    "exec": lambda env: env.exec("true"),
    "upload": lambda env: env.upload_file("a", "/a"),
    "download": lambda env: env.download_dir("/logs", "logs"),
}
NAMES = {"upload": "transfer", "download": "transfer"}


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("trouble", [hang, ignore_a_cancellation])
def test_an_operation_that_never_ends_is_left_on_time(
    run: Run, guarded: Callable[..., BaseEnvironment], op: str, trouble: Trouble
):
    async def operate() -> DeadlineExceeded:
        began = asyncio.get_running_loop().time()
        with pytest.raises(DeadlineExceeded) as late:
            await OPERATIONS[op](guarded(**{op: trouble}))
        assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.1)
        return late.value

    assert run(operate()).op == NAMES.get(op, op)
    assert [fault.owner for fault in ledger.ledger().faults] == [Owner.SANDBOX]


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_bare_timeout_error_never_leaves(
    run: Run, guarded: Callable[..., BaseEnvironment], op: str
):
    environment = guarded(**{op: raising(TimeoutError())})
    with pytest.raises(DeadlineExceeded):
        run(OPERATIONS[op](environment))


@pytest.mark.parametrize(
    ("op", "error"),
    [("start", SandboxStartFailed), ("upload", TransferFailed), ("download", TransferFailed)],
)
def test_a_providers_own_error_gets_a_name_that_says_what_failed(
    run: Run, guarded: Callable[..., BaseEnvironment], op: str, error: type[Exception]
):
    environment = guarded({"/logs"}, **{op: raising(RuntimeError("exit status 125"))})
    with pytest.raises(error, match="RuntimeError: exit status 125"):
        run(OPERATIONS[op](environment))
    (fault,) = ledger.ledger().faults
    assert not fault.policy.reward_valid


def test_a_lost_artifact_is_on_the_ledger_though_harbor_goes_on(
    run: Run, guarded: Callable[..., BaseEnvironment]
):
    environment = guarded({"/out.xlsx"}, download=raising(RuntimeError("stream broke")))
    ledger.ledger().enter("collect")
    with pytest.raises(TransferFailed):
        run(environment.download_file("/out.xlsx", "out.xlsx"))
    (fault,) = ledger.ledger().faults
    assert (fault.code, fault.phase) == ("TransferFailed", Phase.COLLECT)


def test_an_artifact_that_was_never_made_is_no_fault(
    run: Run, guarded: Callable[..., BaseEnvironment]
):
    environment = guarded(set(), download=raising(RuntimeError("no such file")))
    with pytest.raises(RuntimeError):
        run(environment.download_file("/out.xlsx", "out.xlsx"))
    assert ledger.ledger().faults == []


@pytest.mark.parametrize("trouble", [hang, raising(RuntimeError("gone")), raising(TimeoutError())])
def test_a_teardown_never_raises_and_never_costs_a_reward(
    run: Run, guarded: Callable[..., BaseEnvironment], trouble: Trouble
):
    run(guarded(stop=trouble).stop(delete=True))
    (fault,) = ledger.ledger().faults
    assert fault.phase is Phase.STOP
    assert fault.policy.reward_valid
    assert not fault.policy.retry


def test_the_phase_before_a_teardown_goes_on_after_it(
    run: Run, guarded: Callable[..., BaseEnvironment]
):
    environment = guarded()
    ledger.ledger().enter("collect")
    run(environment.stop(delete=True))
    assert ledger.ledger().phase is Phase.COLLECT


def test_harbor_finds_the_guarded_class_by_its_import_path():
    path = guard.import_path("harbor.environments.docker.docker:DockerEnvironment")
    found = import_class(path, base=BaseEnvironment)
    assert issubclass(found, guard.Guarded)
    assert found.__name__ == "GuardedDockerEnvironment"
    assert import_class(path) is found


def test_another_name_of_the_module_is_no_guarded_class():
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        guard.missing  # noqa: B018
