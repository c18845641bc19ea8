# SPDX-License-Identifier: Apache-2.0
"""Whatever an operation does, its caller is back on time and knows which one it was."""

import asyncio
import dataclasses
import gc
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from envkit import deadline as module
from envkit.deadline import (
    DEFAULT_BUDGETS,
    Budgets,
    DeadlineExceeded,
    deadline,
    within,
)
from envkit.fault import EnvkitError, Owner, Phase, ServerGarbage, classify
from envkit.fault.table import OPERATIONS

type Run = Callable[[Coroutine[Any, Any, Any]], Any]


def now() -> float:
    return asyncio.get_running_loop().time()


async def never() -> None:
    await asyncio.get_running_loop().create_future()


async def deaf(seconds: float = 1000.0) -> str:
    """Swallows every cancellation until its time is over."""
    end = now() + seconds
    while now() < end:
        try:
            await asyncio.sleep(end - now())
        except asyncio.CancelledError:
            continue
    return "late"


async def in_block(op: str, seconds: float, work: Coroutine[Any, Any, Any]) -> Any:
    async with deadline(op, seconds):
        return await work


async def timed(work: Coroutine[Any, Any, Any]) -> tuple[float, BaseException | None]:
    began = now()
    try:
        await work
    except BaseException as error:
        return now() - began, error
    return now() - began, None


@pytest.mark.parametrize("bound", [in_block, within])
def test_a_hanging_operation_ends_on_time_and_is_named(run: Run, bound: Any) -> None:
    seconds, error = run(timed(bound("mcp_call", 30.0, never())))
    assert seconds == pytest.approx(30.0)
    assert isinstance(error, DeadlineExceeded)
    assert (error.op, error.seconds) == ("mcp_call", 30.0)
    assert str(error) == "mcp_call did not finish within 30 s"


@pytest.mark.parametrize("bound", [in_block, within])
def test_a_bare_timeout_from_inside_never_leaves(run: Run, bound: Any) -> None:
    async def inner() -> None:
        async with asyncio.timeout(1):
            await never()

    seconds, error = run(timed(bound("transfer", 30.0, inner())))
    assert seconds == pytest.approx(1.0)
    assert isinstance(error, DeadlineExceeded)
    assert isinstance(error.__cause__, TimeoutError)
    assert not isinstance(error, TimeoutError)


@pytest.mark.parametrize("bound", [in_block, within])
def test_an_inner_deadline_keeps_its_own_name(run: Run, bound: Any) -> None:
    _, error = run(timed(bound("start", 30.0, in_block("exec", 2.0, never()))))
    assert isinstance(error, DeadlineExceeded)
    assert error.op == "exec"


@pytest.mark.parametrize("bound", [in_block, within])
def test_results_and_errors_pass_through(run: Run, bound: Any) -> None:
    async def value() -> int:
        await asyncio.sleep(5)
        return 7

    async def garbage() -> None:
        raise ServerGarbage("x")

    assert run(bound("exec", 30.0, value())) == 7
    with pytest.raises(ServerGarbage):
        run(bound("exec", 30.0, garbage()))


def test_what_swallows_its_cancellation_is_abandoned_on_time(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        began = now()
        with pytest.raises(DeadlineExceeded):
            await within("stop", 10.0, deaf(25.0))
        assert now() - began == pytest.approx(10.0)
        with caplog.at_level(logging.WARNING, logger="envkit.deadline"):
            await asyncio.sleep(20.0)
        assert "stop ended after its deadline: done" in caplog.text

    run(main())


@pytest.mark.parametrize("reason", ["out of time", "caller cancelled"])
def test_what_nobody_waits_for_any_more_is_cancelled(run: Run, reason: str) -> None:
    async def main() -> None:
        ended: list[float] = []

        async def tidy() -> None:
            try:
                await never()
            finally:
                ended.append(now())

        began = now()
        caller = asyncio.create_task(within("exec", 10.0, tidy()))
        await asyncio.sleep(4.0)
        if reason == "caller cancelled":
            caller.cancel()
        await asyncio.wait({caller})
        await asyncio.sleep(1.0)
        assert ended == [began + (10.0 if reason == "out of time" else 4.0)]
        assert caller.cancelled() or isinstance(caller.exception(), DeadlineExceeded)

    run(main())


def test_an_abandoned_operation_that_fails_later_is_reported_once(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails_late() -> None:
        await deaf(5.0)
        raise ServerGarbage("too late")

    async def main() -> None:
        with pytest.raises(DeadlineExceeded):
            await within("stop", 1.0, fails_late())
        await asyncio.sleep(20.0)
        gc.collect()

    with caplog.at_level(logging.WARNING):
        run(main())
    assert [record.name for record in caplog.records] == ["envkit.deadline"]
    assert "too late" in caplog.text


def test_a_cancelled_caller_is_cancelled_at_once_even_over_a_deaf_operation(run: Run) -> None:
    async def main() -> None:
        caller = asyncio.create_task(within("exec", 500.0, deaf(40.0)))
        await asyncio.sleep(3.0)
        began = now()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert now() == began
        await asyncio.sleep(100.0)

    run(main())


def test_a_cancelled_block_is_cancelled_and_not_out_of_time(run: Run) -> None:
    async def main() -> None:
        caller = asyncio.create_task(in_block("exec", 500.0, never()))
        await asyncio.sleep(3.0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    run(main())


def test_an_operation_that_cancels_itself_does_not_pass_for_a_cancelled_caller(run: Run) -> None:
    async def main() -> None:
        async def stopped() -> None:
            raise asyncio.CancelledError

        with pytest.raises(EnvkitError, match="exec was cancelled from within") as caught:
            await within("exec", 9.0, stopped())
        assert classify(caught.value, Phase.ACT).owner is Owner.UNKNOWN

    run(main())


def test_every_budget_is_a_known_operation_with_an_owner_and_a_reason() -> None:
    source = inspect.getsource(Budgets)
    for field in dataclasses.fields(Budgets):
        op = field.name.removesuffix("_s")
        assert op in OPERATIONS, op
        fault = classify(DeadlineExceeded(op, 1.0), Phase.RUN)
        assert fault.owner not in (Owner.UNKNOWN, Owner.MODEL)
        assert f'    {field.name}: float = {field.default}\n    """' in source
    budgeted = {field.name.removesuffix("_s") for field in dataclasses.fields(Budgets)}
    assert set(OPERATIONS) - budgeted == {"world_generate", "world_wait"}, "a world sets its own"


def test_budgets_are_finite_and_nest() -> None:
    values = dataclasses.astuple(DEFAULT_BUDGETS)
    assert all(0 < value <= 600 for value in values)
    assert DEFAULT_BUDGETS.mcp_connect_s < DEFAULT_BUDGETS.mcp_call_s
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT_BUDGETS.exec_s = 1.0  # type: ignore[misc]


def test_no_operation_is_bounded_by_a_bare_timeout_in_this_module() -> None:
    assert not issubclass(DeadlineExceeded, TimeoutError)
    assert "wait_for" not in inspect.getsource(module)
