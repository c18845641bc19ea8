# SPDX-License-Identifier: Apache-2.0
"""A channel offers what it was built with, answers each request, and fails all when it closes."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from envkit.deadline import within
from envkit.sandbox.channel import Channel, ChannelClosed, Operation, RequestFailed
from envkit.sandbox.outbox import Outbox

type Scene = Callable[[Channel, Channel], Coroutine[Any, Any, Any]]


def between(scene: Scene, operations: dict[str, Operation] | None = None, **options: Any) -> Any:
    async def play() -> Any:
        ours, theirs = socket.socketpair()
        asking, serving = Channel(ours, **options), Channel(theirs, operations)
        try:
            return await within("scene", 20, scene(asking, serving))
        finally:
            asking.close()
            serving.close()

    return asyncio.run(play())


async def echo(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    return {"heard": request["word"]}


def test_answers_find_their_requests_whatever_the_order():
    gate: list[asyncio.Event] = []

    async def slow_first(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if request["word"] == "first":
            await gate[0].wait()
        else:
            gate[0].set()
        return {"heard": request["word"]}

    async def scene(asking: Channel, _: Channel) -> list[str]:
        gate.append(asyncio.Event())
        answers = await asyncio.gather(
            asking.ask("say", word="first"), asking.ask("say", word="second")
        )
        return [answer["heard"] for answer in answers]

    assert between(scene, {"say": slow_first}) == ["first", "second"]


def test_an_operation_that_is_not_offered_is_refused_and_its_descriptors_closed():
    async def scene(asking: Channel, _: Channel) -> RequestFailed:
        read, write = os.pipe()
        with pytest.raises(RequestFailed) as refused:
            await asking.ask("steal", [read])
        os.close(read)
        with pytest.raises(BrokenPipeError):
            os.write(write, b"x")
        os.close(write)
        return refused.value

    assert between(scene, {"say": echo}).code == "HarnessError"


def test_an_error_of_an_operation_keeps_its_class_name():
    async def broken(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        raise PermissionError("not yours")

    async def scene(asking: Channel, _: Channel) -> RequestFailed:
        with pytest.raises(RequestFailed) as failed:
            await asking.ask("say", word="x")
        return failed.value

    failure = between(scene, {"say": broken})
    assert (failure.code, failure.message) == ("PermissionError", "not yours")


def test_what_waits_fails_at_once_when_the_other_end_is_gone():
    async def never(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    closed: list[bool] = []

    async def scene(asking: Channel, serving: Channel) -> None:
        waiting = asyncio.ensure_future(asking.ask("say"))
        await asyncio.sleep(0)
        serving.close()
        with pytest.raises(ChannelClosed):
            await waiting
        with pytest.raises(ChannelClosed):
            await asking.ask("say")

    between(scene, {"say": never}, on_close=lambda: closed.append(True))
    assert closed == [True]


def test_garbage_from_the_other_end_closes_the_channel():
    async def scene(asking: Channel, serving: Channel) -> None:
        waiting = asyncio.ensure_future(asking.ask("say", word="x"))
        await asyncio.sleep(0)
        serving._sock.sendall(b"\xff\xff\xff\xff garbage")
        with pytest.raises(ChannelClosed):
            await waiting

    between(scene)


def test_events_reach_the_listener_and_need_no_answer():
    heard: list[dict[str, Any]] = []

    async def scene(asking: Channel, serving: Channel) -> None:
        serving.tell("box_exit", box="agent1")
        await asking.ask("say", word="after")

    between(scene, {"say": echo}, on_event=heard.append)
    assert heard == [{"event": "box_exit", "box": "agent1"}]


def test_two_ends_that_flood_each_other_do_not_wait_for_one_another():
    """Neither reads before it has sent everything, and all of it is far above a socket's buffer."""
    load, floods = "x" * 4096, 400

    async def scene(asking: Channel, serving: Channel) -> list[int]:
        asked = [asyncio.ensure_future(asking.ask("say", word=n, load=load)) for n in range(floods)]
        for n in range(floods):
            serving.tell("flood", number=n, load=load)
        answers = await asyncio.gather(*asked)
        return [answer["heard"] for answer in answers]

    heard: list[int] = []

    def hear(message: dict[str, Any]) -> None:
        heard.append(message["number"])

    assert between(scene, {"say": echo}, on_event=hear) == list(range(floods))
    assert heard == list(range(floods))


def test_descriptors_that_wait_for_a_slow_reader_arrive_though_their_sender_closed_its_own():
    async def say(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        with os.fdopen(fds[0], "wb") as pipe:
            pipe.write(str(request["n"]).encode())
        return {}

    async def scene(asking: Channel, _: Channel) -> list[bytes]:
        ends = [os.pipe() for _ in range(100)]
        asked: list[asyncio.Future[dict[str, Any]]] = []
        for n, (_, write) in enumerate(ends):
            coming = asking.ask("say", [write], n=n, load="x" * 8192)
            asked.append(asyncio.ensure_future(coming))
        await asyncio.sleep(0)
        for _, write in ends:
            os.close(write)
        await asyncio.gather(*asked)
        return [_drained(read) for read, _ in ends]

    assert between(scene, {"say": say}) == [str(n).encode() for n in range(100)]


def _drained(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as pipe:
        return pipe.read()


def test_a_peer_that_reads_nothing_is_gone_after_its_time():
    async def scene() -> None:
        ours, theirs = socket.socketpair()
        lost = asyncio.Event()
        ours.setblocking(False)
        outbox = Outbox(ours, on_lost=lost.set, stall_s=0.01)
        with ours, theirs:
            for _ in range(200):
                outbox.put(b"x" * 4096)
            await within("stall", 20, lost.wait())
            outbox.close()

    asyncio.run(scene())
