# SPDX-License-Identifier: Apache-2.0
"""What is tried again, how often, how long between, and what stays on the record."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from envkit.deadline import DeadlineExceeded
from envkit.fault import (
    Fault,
    JudgeError,
    NoVerdict,
    OutOfMemory,
    Owner,
    Phase,
    SandboxDied,
    SandboxStartFailed,
    TaskError,
    classify,
)
from envkit.retry import DEFAULT_BACKOFF, Attempts, Backoff, retry

type Run = Callable[[Coroutine[Any, Any, Any]], Any]


def failing(*errors: BaseException) -> Callable[[], Awaitable[str]]:
    """Fails with each error in turn, then works."""
    left = list(errors)

    async def operation() -> str:
        await asyncio.sleep(2.0)
        if left:
            raise left.pop(0)
        return "done"

    return operation


async def tried(*errors: BaseException, idempotent: bool = True, tries: int = 4) -> Attempts:
    """The attempts; the last error, if it ended in one, is swallowed."""
    attempts = Attempts()
    backoff = Backoff(tries=tries)
    work = retry(
        failing(*errors),
        phase=Phase.START,
        idempotent=idempotent,
        backoff=backoff,
        attempts=attempts,
    )
    with contextlib.suppress(*map(type, errors)):
        await work
    return attempts


def test_a_passing_outage_is_survived_and_stays_on_the_record(run: Run) -> None:
    attempts = run(tried(SandboxStartFailed("a"), DeadlineExceeded("start", 3), JudgeError("c")))
    codes = [each.fault.code for each in attempts.failed]
    assert codes == ["SandboxStartFailed", "DeadlineExceeded:start", "JudgeError"]
    assert [each.number for each in attempts.failed] == [1, 2, 3]
    assert attempts.retried == 3


def test_tries_are_spent_and_the_last_error_is_raised_as_it_was(run: Run) -> None:
    errors = [SandboxStartFailed(str(number)) for number in range(9)]
    attempts = Attempts()
    with pytest.raises(SandboxStartFailed) as caught:
        run(retry(failing(*errors), phase=Phase.START, idempotent=True, attempts=attempts))
    assert caught.value is errors[DEFAULT_BACKOFF.tries - 1]
    assert len(attempts.failed) == DEFAULT_BACKOFF.tries
    assert attempts.failed[-1].wait_s is None
    assert attempts.retried == DEFAULT_BACKOFF.tries - 1


@pytest.mark.parametrize("error", [TaskError("x"), NoVerdict("x"), OutOfMemory("x")])
def test_what_another_try_cannot_help_is_not_tried_again(run: Run, error: Exception) -> None:
    attempts = run(tried(error))
    assert len(attempts.failed) == 1


def test_an_unknown_fault_is_tried_once_more(run: Run) -> None:
    errors = [ZeroDivisionError("a"), ValueError("b"), KeyError("c")]
    attempts = run(tried(*errors))
    assert [each.fault.owner for each in attempts.failed] == [Owner.UNKNOWN] * 2
    assert attempts.retried == 1


def test_known_faults_do_not_use_up_the_one_more_try_of_an_unknown_one(run: Run) -> None:
    attempts = run(tried(SandboxStartFailed("a"), ValueError("b"), SandboxStartFailed("c")))
    assert attempts.retried == 3


def test_what_is_not_idempotent_is_tried_once(run: Run) -> None:
    attempts = run(tried(SandboxStartFailed("a"), SandboxStartFailed("b"), idempotent=False))
    assert len(attempts.failed) == 1


def test_whether_it_is_idempotent_must_be_said() -> None:
    with pytest.raises(TypeError, match="idempotent"):
        retry(failing(), phase=Phase.START)  # type: ignore[call-arg]


def test_a_cancelled_operation_is_cancelled_and_not_tried_again(run: Run) -> None:
    async def main() -> None:
        attempts = Attempts()
        operation = failing(SandboxStartFailed("a"))
        work = retry(operation, phase=Phase.START, idempotent=True, attempts=attempts)
        task = asyncio.create_task(work)
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [each.fault.owner for each in attempts.failed] == [Owner.CANCELLED]

    run(main())


def test_a_cancelled_wait_is_cancelled(run: Run) -> None:
    async def main() -> None:
        work = retry(failing(SandboxStartFailed("a")), phase=Phase.START, idempotent=True)
        task = asyncio.create_task(work)
        await asyncio.sleep(2.0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_waits_are_spread_over_the_whole_of_a_doubling_bound(run: Run) -> None:
    async def main() -> list[list[float]]:
        async def waits(seed: int) -> list[float]:
            attempts = Attempts()
            errors = [SandboxStartFailed("x")] * 7
            backoff = Backoff(tries=8, first_s=1.0, most_s=16.0)
            rng = random.Random(seed)
            await retry(
                failing(*errors),
                phase=Phase.START,
                idempotent=True,
                backoff=backoff,
                attempts=attempts,
                rng=rng,
            )
            return [each.wait_s or 0.0 for each in attempts.failed]

        return [await waits(seed) for seed in range(200)]

    for bound, waits in zip([1, 2, 4, 8, 16, 16, 16], zip(*run(main()), strict=True), strict=True):
        assert 0 <= min(waits) < 0.05 * bound
        assert 0.95 * bound < max(waits) <= bound
        assert sum(waits) / len(waits) == pytest.approx(bound / 2, rel=0.15)


def test_the_clock_shows_the_waits_that_are_on_the_record(run: Run) -> None:
    async def main() -> None:
        began = asyncio.get_running_loop().time()
        attempts = await tried(*[SandboxStartFailed("x")] * 3)
        took = asyncio.get_running_loop().time() - began
        waited = sum(each.wait_s or 0.0 for each in attempts.failed)
        assert took == pytest.approx(4 * 2.0 + waited)

    run(main())


def test_the_slot_is_free_while_waiting(run: Run) -> None:
    async def main() -> None:
        slot = asyncio.Semaphore(1)
        busy: list[str] = []

        def job(name: str, *errors: Exception) -> Coroutine[Any, Any, str]:
            operation = failing(*errors)

            async def held() -> str:
                assert not busy
                busy.append(name)
                try:
                    return await operation()
                finally:
                    busy.remove(name)

            return retry(held, phase=Phase.START, idempotent=True, slot=slot, rng=Slow())

        began = asyncio.get_running_loop().time()
        first = asyncio.create_task(job("waits", SandboxStartFailed("x")))
        second = asyncio.create_task(job("works"))
        await second
        assert asyncio.get_running_loop().time() - began == pytest.approx(4.0)
        assert not first.done()
        await first

    class Slow(random.Random):
        def uniform(self, a: float, b: float) -> float:
            return 100.0

    run(main())


def test_a_slot_is_given_back_whichever_way_it_ends(run: Run) -> None:
    async def main() -> None:
        slot = asyncio.Semaphore(1)
        for errors in ([], [TaskError("x")], [asyncio.CancelledError()]):
            work = retry(failing(*errors), phase=Phase.START, idempotent=True, slot=slot)
            await asyncio.gather(work, return_exceptions=True)
        assert not slot.locked()

    run(main())


def returning(*faults: Fault | None) -> Callable[[], Awaitable[Fault | None]]:
    """Returns each fault in turn."""
    left = list(faults)

    async def operation() -> Fault | None:
        await asyncio.sleep(2.0)
        return left.pop(0)

    return operation


def told(error: Exception) -> Fault:
    return classify(error, Phase.ACT)


@pytest.mark.parametrize(
    ("faults", "tries"),
    [
        ([None], 1),
        ([told(SandboxDied("a")), None], 2),
        ([told(SandboxDied("a")), told(SandboxDied("b")), None], 3),
        ([told(SandboxDied("a"))] * 9, DEFAULT_BACKOFF.tries),
        ([told(ValueError("a")), told(ValueError("b")), None], 2),
        ([told(TaskError("a")), None], 1),
        ([told(OutOfMemory("a")), None], 1),
    ],
)
def test_a_result_that_tells_a_fault_is_tried_again_as_one_that_raises(
    run: Run, faults: list[Fault | None], tries: int
) -> None:
    attempts = Attempts()
    work = retry(
        returning(*faults),
        phase=Phase.ACT,
        idempotent=True,
        attempts=attempts,
        fault_of=lambda result: result,
    )
    assert run(work) is faults[tries - 1]
    assert [each.fault for each in attempts.failed] == [f for f in faults[:tries] if f]
    assert attempts.retried == tries - 1
