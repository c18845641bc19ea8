# SPDX-License-Identifier: Apache-2.0
"""Every operation of a trial, hung, raising, killed and talking nonsense: `fault_matrix.toml`.

One launcher runs a real trial for every row of an operation that the product performs. Only the
rows marked ``live = false`` go through `within` and `classify` alone.
"""

import asyncio
import dataclasses
import gzip
import socket
import struct
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envkit.deadline import Budgets, within
from envkit.fault import (
    EngineFailed,
    EngineGarbage,
    EngineUnreachable,
    Fault,
    JudgeError,
    NoVerdict,
    Phase,
    classify,
)
from envkit.trial.record import Attempt, decided_by

from .tiny import Ran, launcher, lend_parts, make_task, run_trials, spec

pytestmark = pytest.mark.integration

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("fault_matrix.toml").read_text(encoding="utf-8")
)
KINDS = {"hang", "raise", "die", "garbage"}

HURRIED = dataclasses.replace(
    Budgets(**{field.name: 4.0 for field in dataclasses.fields(Budgets)}),
    start_s=6.0,  # the gateway's start is part of it
    mcp_close_s=1.0,
)
"""Ten times what an operation takes when ten trials share two cores, so that a hang is short."""

IMPATIENT = Budgets(**{field.name: 0.1 for field in dataclasses.fields(Budgets)})
"""Too little for any trial; the one that is stopped does not come so far."""
AGENTS = {
    "exec": "faulty_agent:CommandAgent",
    "setup": "faulty_agent:FaultyAgent",
    "act": "faulty_agent:FaultyAgent",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    operation: str
    role: str
    kind: str
    owner: str
    code: str
    attempts: int
    reward: str
    live: bool
    phase: Phase

    @property
    def name(self) -> str:
        return f"{self.operation}.{self.kind}.{self.role}"


def _rows() -> Iterator[Row]:
    for operation, roles in TABLE.items():
        for role, lines in roles.items():
            for kind, line in lines.items():
                if kind in ("live", "phase"):
                    continue
                owner, code, attempts, reward = line
                yield Row(
                    operation=operation,
                    role=role,
                    kind=kind,
                    owner=owner,
                    code=code,
                    attempts=attempts,
                    reward=reward,
                    live=lines.get("live", True),
                    phase=Phase(lines.get("phase", "run")),
                )


ROWS = tuple(_rows())
LIVE = [row for row in ROWS if row.live]


def _names(rows: list[Row]) -> dict[str, Any]:
    return {"argnames": "row", "argvalues": rows, "ids": [row.name for row in rows]}


@pytest.fixture(scope="module")
def ran(reach: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Every live row but the stopped process, which needs a limit of its own."""
    place = tmp_path_factory.mktemp("matrix")
    ordinary = make_task(place / "tasks")
    hasty = make_task(place / "tasks", "hasty", agent_s=4)
    specs = [
        spec(
            hasty if row.operation == "act" else ordinary,
            place / "out",
            row.name,
            AGENTS.get(row.operation, "replay"),
        )
        for row in LIVE
        if row.name != "trial.hang.agent"
    ]
    with pytest.MonkeyPatch.context() as patch:
        lend_parts(patch)
        launches = launcher(
            place / "out", env="faulty_box:FaultyEnvironment", concurrency=10, budgets=HURRIED
        )
        return run_trials(launches, specs)


def test_every_budget_stands_in_the_table_with_every_kind_of_fault() -> None:
    operations = {field.name.removesuffix("_s") for field in dataclasses.fields(Budgets)}
    operations = (operations - {"transfer"}) | {"transfer_up", "transfer_down"}
    assert operations <= TABLE.keys()
    for operation in operations:
        for role, lines in TABLE[operation].items():
            assert lines.keys() >= KINDS, f"{operation}.{role}"


@pytest.mark.parametrize(
    **_names([row for row in LIVE if row.name != "trial.hang.agent"]),
)
def test_a_fault_has_its_owner_its_retry_and_its_reward(ran: Ran, row: Row) -> None:
    record = ran[row.name]
    _judge(row, record.attempts[0], len(record.attempts))
    assert record.reward_valid is (row.attempts == 2 or row.reward == "kept")
    if record.reward_valid:
        assert record.reward == 1.0


def test_a_verified_reward_is_never_lost_to_a_teardown(ran: Ran) -> None:
    teardowns = [row for row in LIVE if row.operation in ("stop", "mcp_close")]
    assert len(teardowns) >= 12
    for row in teardowns:
        record = ran[row.name]
        assert (record.reward, record.reward_valid) == (1.0, True), row.name
        assert len(record.attempts) == 1, row.name
        assert {fault.phase for fault in record.attempts[0].faults} <= {Phase.STOP}, row.name
        assert row.operation != "stop" or record.attempts[0].faults, row.name


def test_no_fault_leaves_anything_behind(ran: Ran) -> None:
    assert ran.leftovers == []


def test_a_trial_that_stopped_is_killed_at_its_limit(
    boxes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in LIVE if row.name == "trial.hang.agent")
    task = make_task(tmp_path / "tasks", agent_s=1, verifier_s=1)
    lend_parts(monkeypatch)
    launches = launcher(
        tmp_path / "out", env="faulty_box:FaultyEnvironment", concurrency=1, budgets=IMPATIENT
    )
    ran = run_trials(launches, [spec(task, tmp_path / "out", row.name)])
    _judge(row, ran[row.name].attempts[0], len(ran[row.name].attempts))
    assert ran.leftovers == []


def _judge(row: Row, first: Attempt, attempts: int) -> None:
    fault = decided_by(first.faults) or next(iter(first.faults), None)
    assert _blame(fault) == (row.owner, row.code), first.faults
    assert attempts == row.attempts, first.faults
    if row.reward == "kept":
        assert (first.reward, first.reward_valid) == (1.0, True), first.faults
    else:
        assert first.reward_valid is False
    if row.reward == "none":
        assert first.reward is None


def _blame(fault: Fault | None) -> tuple[str, str]:
    return (fault.owner.value, fault.code) if fault else ("", "")


# --- operations without a call site yet ---


async def _never() -> None:
    await asyncio.Event().wait()


async def _cancelled_within() -> None:
    raise asyncio.CancelledError


async def _loopback(answer: bytes | None) -> bytes:
    """What a peer that answers so, or is killed before it does, is to a caller."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if answer is None:
            linger = struct.pack("ii", 1, 0)  # its end comes as a reset, as a killed peer's does
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            return await reader.read()
        finally:
            writer.close()


def _raising(error: Exception) -> Callable[[], Awaitable[object]]:
    async def fail() -> None:
        raise error

    return fail


async def _unpack_noise() -> bytes:
    return gzip.decompress(await _loopback(b"\x80\xff noise"))


ENGINE = ("generate", "generate_idle", "engine_start", "engine_stop")
"""What its client meets on the wire stands in the tests of the client."""

CALLS: dict[str, Callable[[], Awaitable[object]]] = {
    "download.raise": _raising(ConnectionResetError("Connection reset by peer")),
    "download.die": _raising(BrokenPipeError("Broken pipe")),
    "download.garbage": _unpack_noise,
    **{f"{each}.raise": _raising(EngineFailed("HTTP 500")) for each in ENGINE},
    **{f"{each}.die": _raising(EngineUnreachable("connection reset")) for each in ENGINE},
    **{f"{each}.garbage": _raising(EngineGarbage("<html>")) for each in ENGINE},
    "judge.raise": _raising(JudgeError("HTTP 529")),
    "judge.die": lambda: _loopback(None),
    "judge.garbage": _raising(NoVerdict("three answers without a verdict")),
    "hook.raise": _raising(RuntimeError("an error of the hook's own")),
    "hook.die": _cancelled_within,
    "hook.garbage": _raising(TypeError("'NoneType' object is not callable")),
}


@pytest.mark.parametrize(**_names([row for row in ROWS if not row.live]))
def test_an_operation_without_a_call_site_is_judged_by_its_name_and_error(row: Row) -> None:
    async def meet() -> BaseException:
        call = _never if row.kind == "hang" else CALLS[f"{row.operation}.{row.kind}"]
        try:
            await within(row.operation, 0.05 if row.kind == "hang" else 10, call())
        except Exception as error:
            return error
        raise AssertionError("nothing went wrong")

    fault = classify(asyncio.run(meet()), row.phase)
    assert _blame(fault) == (row.owner, row.code)
    assert (2 if fault.policy.retry else 1) == row.attempts
    assert fault.policy.reward_valid is False
