# SPDX-License-Identifier: Apache-2.0
"""A lost connection: what ran does not run again, and what nobody knows is said."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from envkit.agent.toolbelt.connection import UNKNOWN, Called, Connection
from envkit.deadline import DEFAULT_BUDGETS
from envkit.fault import ServerDisconnected, ServerStartFailed
from envkit.sandbox.ledger import Ledger, begin

from .gateway import EXEC, Way, gateway, way_to

pytestmark = pytest.mark.integration

type Work = Callable[[Connection, Way], Awaitable[object]]


def connected(root: Path, work: Work, *, journals: bool = True) -> Ledger:
    """Do it over a way to a gateway whose ledger is looked at afterwards."""
    book = begin()
    book.enter("act")

    async def main() -> None:
        async with gateway(root) as port, way_to(port) as (way, endpoint):
            connection = Connection(endpoint, DEFAULT_BUDGETS, journals=journals)
            async with connection:
                await work(connection, way)

    asyncio.run(main())
    return book


async def add_line(connection: Connection, call_id: str = "call-0-1") -> Called:
    """A call whose effect can be counted."""
    return await connection.call(EXEC, {"code": "echo line >> lines.txt"}, call_id)


def appeared(path: Path) -> None:
    """Wait until it is there."""
    while not path.exists():
        time.sleep(0.01)


def lines(root: Path) -> int:
    return len((root / "lines.txt").read_text().splitlines())


def test_an_answer_that_is_lost_is_had_from_the_journal_and_nothing_runs_twice(
    tmp_path: Path,
) -> None:
    async def work(connection: Connection, way: Way) -> None:
        way.loses = 1
        called = await add_line(connection)
        assert way.lost == 1
        assert called.result.ok
        assert called.disturbed
        assert lines(tmp_path) == 1
        again = await add_line(connection, "call-0-2")
        assert not again.disturbed
        assert lines(tmp_path) == 2

    assert connected(tmp_path, work).faults == []


def test_several_losses_in_a_row_are_survived(tmp_path: Path) -> None:
    async def work(connection: Connection, way: Way) -> None:
        way.loses = 3
        called = await add_line(connection)
        assert way.lost == 3
        assert called.result.ok

    assert connected(tmp_path, work).faults == []
    assert lines(tmp_path) == 1


def test_a_server_that_is_lost_for_good_is_a_fault_on_the_ledger(tmp_path: Path) -> None:
    async def work(connection: Connection, way: Way) -> None:
        way.loses = 9
        with pytest.raises(ServerDisconnected):
            await add_line(connection)

    book = connected(tmp_path, work)
    assert [fault.code for fault in book.faults] == ["ServerDisconnected"]
    assert lines(tmp_path) == 1


def test_a_server_that_lets_nobody_in_any_more_is_the_loss_itself(tmp_path: Path) -> None:
    async def work(connection: Connection, way: Way) -> None:
        way.loses = 1
        way.shut = True
        with pytest.raises(ServerDisconnected):
            await add_line(connection)

    assert connected(tmp_path, work).invalid()


def test_a_foreign_server_is_never_asked_twice_and_the_agent_is_told(tmp_path: Path) -> None:
    async def work(connection: Connection, way: Way) -> None:
        way.loses = 1
        called = await add_line(connection)
        assert way.lost == 1
        assert (called.result.ok, called.result.code) == (False, UNKNOWN)
        assert "may or may not have worked" in called.result.text
        assert called.disturbed
        assert lines(tmp_path) == 1
        assert (await add_line(connection, "call-1-1")).result.ok, "and it goes on"

    book = connected(tmp_path, work, journals=False)
    assert [fault.code for fault in book.faults] == ["ServerDisconnected"]
    assert book.invalid()


def test_a_call_that_the_gateway_was_interrupted_in_is_unknown_and_on_the_ledger(
    tmp_path: Path,
) -> None:
    async def work(connection: Connection, way: Way) -> None:
        code = "echo line >> lines.txt; sleep 30"
        task = asyncio.create_task(connection.call(EXEC, {"code": code}, "call-0-1"))
        await asyncio.to_thread(appeared, tmp_path / "lines.txt")
        way.cut()
        called = await task
        assert (called.result.ok, called.result.code) == (False, UNKNOWN)

    book = connected(tmp_path, work)
    assert lines(tmp_path) == 1
    assert [fault.owner.value for fault in book.faults] == ["server"]


def test_a_server_that_is_not_there_cannot_be_opened(tmp_path: Path) -> None:
    async def main() -> None:
        async with way_to(1) as (way, endpoint):
            way.shut = True
            async with Connection(endpoint, DEFAULT_BUDGETS, journals=True):
                pass

    book = begin()
    with pytest.raises(ServerStartFailed):
        asyncio.run(main())
    assert book.invalid()
