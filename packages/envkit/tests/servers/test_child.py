# SPDX-License-Identifier: Apache-2.0
"""Work in a child that can be killed: deadlines, deaths, memory, what it may hold."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace

import pytest

from envkit.servers.child import ChildBudget, in_child
from envkit.servers.contract import Done, Image, ToolFault

from .conftest import children_of, is_running, until

BUDGET = ChildBudget(seconds=5, memory_mib=256)


def run(work, budget: ChildBudget = BUDGET) -> Done:
    return asyncio.run(in_child(work, budget))


def fault(work, budget: ChildBudget = BUDGET) -> ToolFault:
    with pytest.raises(ToolFault) as caught:
        run(work, budget)
    return caught.value


def test_a_result_comes_back_whole() -> None:
    done = Done(
        did="did",
        text="é" * 300_000,
        counts={"a": 1},
        paths=["/x"],
        next={"page": 2},
        images=[Image(data="AA", media_type="image/png")],
        remember={"k": "v"},
    )
    came = run(lambda _starting: done)
    assert (came.text, came.next, tuple(came.images)) == (done.text, done.next, tuple(done.images))


def test_a_fault_comes_back_as_it_was_raised() -> None:
    def work(_starting):
        raise ToolFault("code", "message", fix="fix", field="f", retryable=True, detail="more")

    came = fault(work)
    assert (came.code, came.field, came.retryable, came.detail) == ("code", "f", True, "more")


def test_a_child_that_hangs_is_killed_on_time() -> None:
    def work(_starting):
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        while True:
            pass

    began = time.monotonic()
    came = fault(work, ChildBudget(seconds=0.3, memory_mib=64))
    assert time.monotonic() - began < 2
    assert (came.code, came.owner, came.applied) == ("deadline_exceeded", "server", "no")


def test_a_hung_child_does_not_delay_another() -> None:
    async def both():
        slow = asyncio.create_task(in_child(lambda _s: time.sleep(60), BUDGET))
        await asyncio.sleep(0)
        began = time.monotonic()
        await in_child(lambda _starting: Done(did="quick"), BUDGET)
        seconds = time.monotonic() - began
        slow.cancel()
        return seconds

    assert asyncio.run(both()) < 2


def test_an_effect_that_had_begun_is_not_called_undone() -> None:
    def work(starting):
        starting()
        time.sleep(60)

    assert fault(work, ChildBudget(seconds=0.2, memory_mib=64)).applied == "unknown"


@pytest.mark.parametrize("end", [os.abort, lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_a_crash_has_a_name(end) -> None:
    came = fault(lambda _starting: end())
    assert came.code == "reader_crashed"
    assert "signal" in came.message


def test_an_unknown_exception_names_its_place() -> None:
    came = fault(lambda _starting: 1 // 0)
    assert (came.code, came.owner) == ("internal_error", "server")
    assert "ZeroDivisionError" in came.message
    assert "test_child.py" in came.message


def test_memory_is_bounded() -> None:
    assert fault(lambda _starting: bytearray(1 << 30)).code == "file_too_large"


def test_a_child_cannot_flood_the_gateway() -> None:
    came = fault(
        lambda _starting: Done(did="x", text="x" * (80 << 20)),
        ChildBudget(seconds=20, memory_mib=2000),
    )
    assert came.code == "reader_crashed"


def test_a_child_holds_nothing_of_its_parent() -> None:
    read_fd, write_fd = os.pipe()
    try:
        fds = run(lambda _starting: Done(did=" ".join(os.listdir("/proc/self/fd")))).did.split()
        held = {int(fd) for fd in fds}
        assert read_fd not in held
        assert write_fd not in held
        assert len(held) <= 5
    finally:
        os.close(read_fd)
        os.close(write_fd)


def test_what_a_child_prints_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    run(lambda _starting: Done(did=str(os.write(1, b"noise"))))
    assert capfd.readouterr().out == ""


def test_a_cancelled_call_kills_its_child() -> None:
    async def cancel() -> None:
        before = set(children_of(os.getpid()))
        task = asyncio.create_task(in_child(lambda _s: time.sleep(60), BUDGET))
        await asyncio.sleep(0)
        (child,) = set(children_of(os.getpid())) - before
        task.cancel()
        await asyncio.wait([task])
        await until(lambda: not is_running(child))

    asyncio.run(cancel())


def test_a_call_too_slow_by_what_was_asked_is_the_askers() -> None:
    def work(_starting):
        signal.pause()

    budget = ChildBudget(seconds=0.5, memory_mib=64, slow="model")
    assert fault(work, budget).owner == "model"
    assert fault(work, replace(budget, slow="server")).owner == "server"


def test_a_child_that_found_no_core_is_not_the_askers() -> None:
    rivals = [_rival() for _ in range(4)]

    def work(_starting):
        _pin()
        while True:
            pass

    try:
        budget = ChildBudget(seconds=2.0, memory_mib=64, slow="model")
        assert fault(work, budget).owner == "server"
    finally:
        for rival in rivals:
            os.kill(rival, signal.SIGKILL)
            os.waitpid(rival, 0)


def _rival() -> int:
    """A busy process in a session of its own, on the core that all share."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        _pin()
        while True:
            pass
    return pid


def _pin() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
