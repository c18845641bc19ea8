# SPDX-License-Identifier: Apache-2.0
"""Whatever a server does, the caller is back on time with a typed fault, and nothing is reused."""

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest

from envkit.agent.mcp_client import Endpoint, ToolClient
from envkit.deadline import DEFAULT_BUDGETS, DeadlineExceeded
from envkit.fault import (
    EnvkitError,
    Owner,
    Phase,
    ServerDisconnected,
    ServerError,
    ServerGarbage,
    ServerStartFailed,
    TokenExpired,
    classify,
)

pytestmark = pytest.mark.integration

type Serve = Callable[..., AbstractAsyncContextManager[Endpoint]]

HANG_S = 0.4
"""What a test waits for a server that never answers; everything else has its usual time."""

NO_CONNECT = replace(DEFAULT_BUDGETS, mcp_connect_s=HANG_S, mcp_close_s=HANG_S)
NO_ANSWER = replace(DEFAULT_BUDGETS, mcp_call_s=HANG_S, mcp_close_s=HANG_S)

SLACK_S = 10.0
"""On a busy machine of two cores; a client without a deadline of its own waits 17 s to for ever."""


async def connecting(endpoint: Endpoint, fault: str = "") -> BaseException | None:
    budgets = NO_CONNECT if fault in ("hang", "drip") else DEFAULT_BUDGETS
    try:
        async with ToolClient.open(endpoint, budgets) as client:
            await client.list_tools()
    except EnvkitError as error:
        return error
    return None


async def calling(endpoint: Endpoint, fault: str) -> tuple[BaseException | None, ...]:
    """What a call comes to, and what the next request on the same client does."""
    budgets = NO_ANSWER if fault in ("hang", "drip") else DEFAULT_BUDGETS
    async with ToolClient.open(endpoint, budgets) as client:
        first = await outcome(client.call("look", {}))
        return first, await outcome(client.list_tools())


async def outcome(work: Coroutine[Any, Any, Any]) -> BaseException | None:
    try:
        await work
    except EnvkitError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("fine", None),
        ("hang", DeadlineExceeded),
        ("drip", DeadlineExceeded),
        ("close", ServerStartFailed),
        ("cut", ServerStartFailed),
        ("lost", ServerStartFailed),
        ("http 401", ServerStartFailed),
        ("garbage", ServerGarbage),
        ("html", ServerGarbage),
        ("not json", ServerGarbage),
        ("not rpc", ServerGarbage),
        ("wrong result", ServerGarbage),
        ("endless list", ServerGarbage),
        ("http 404", ServerGarbage),
        ("http 429", ServerGarbage),
        ("http 500", ServerGarbage),
        ("internal error", ServerError),
    ],
)
def test_connecting_to_a_faulty_server(
    faulty_server: Serve, fault: str, expected: type[EnvkitError] | None
) -> None:
    async def main() -> None:
        async with faulty_server(connect=fault) as endpoint:
            began = time.monotonic()
            error = await connecting(endpoint, fault)
            assert time.monotonic() - began < HANG_S + SLACK_S
            check(error, expected, "mcp_connect")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fault", "expected", "dead"),
    [
        ("fine", None, False),
        ("hang", DeadlineExceeded, False),
        ("drip", DeadlineExceeded, False),
        ("close", ServerDisconnected, True),
        ("cut", ServerDisconnected, True),
        ("lost", ServerDisconnected, True),
        ("garbage", ServerGarbage, False),
        ("html", ServerGarbage, False),
        ("not json", ServerGarbage, False),
        ("not rpc", ServerGarbage, False),
        ("wrong result", ServerGarbage, False),
        ("http 401", TokenExpired, False),
        ("http 404", ServerGarbage, False),
        ("http 429", ServerGarbage, False),
        ("http 500", ServerGarbage, False),
        ("internal error", ServerError, False),
        ("unknown tool", None, False),
    ],
)
def test_a_call_that_meets_a_fault(
    faulty_server: Serve, fault: str, expected: type[EnvkitError] | None, dead: bool
) -> None:
    async def main() -> None:
        async with faulty_server(call=fault) as endpoint:
            began = time.monotonic()
            first, second = await calling(endpoint, fault)
            assert time.monotonic() - began < HANG_S + SLACK_S
            check(first, expected, "mcp_call")
            assert isinstance(second, ServerDisconnected) if dead else second is None

    asyncio.run(main())


def check(error: BaseException | None, expected: type[EnvkitError] | None, op: str) -> None:
    if expected is None:
        assert error is None
        return
    assert type(error) is expected
    assert "s3cret" not in str(error)
    fault = classify(error, Phase.ACT)
    assert (fault.owner, fault.policy.retry, fault.policy.reward_valid) == (
        Owner.SERVER,
        True,
        False,
    )
    if isinstance(error, DeadlineExceeded):
        assert error.op == op


def test_a_server_that_is_not_there_is_a_failed_start() -> None:
    error = asyncio.run(connecting(Endpoint(url="http://127.0.0.1:9/mcp/")))
    assert type(error) is ServerStartFailed


def test_a_url_that_is_none_is_a_failed_start() -> None:
    error = asyncio.run(connecting(Endpoint(url="127.0.0.1:9/mcp/")))
    assert type(error) is ServerStartFailed


def test_a_token_that_no_request_can_carry_is_a_failed_start_and_is_not_told() -> None:
    error = asyncio.run(connecting(Endpoint(url="http://127.0.0.1:9/mcp/", token="s3cret\n")))
    assert type(error) is ServerStartFailed
    assert "s3cret" not in str(error)


def test_a_wrong_token_is_named(real_server: Any) -> None:
    error = asyncio.run(connecting(replace(real_server.endpoint, token="wrong-token")))
    assert type(error) is ServerStartFailed
    assert "401" in str(error)
    assert "wrong-token" not in repr(error)


def test_tools_are_listed_and_called(real_server: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(real_server.endpoint) as client:
            tools = {tool.name for tool in await client.list_tools()}
            assert {"echo", "refuse", "envelope"} <= tools
            result = await client.call("echo", {"text": "two\nlines"})
            assert (result.ok, result.text) == (True, "two\nlines")
            assert 0 < result.seconds < 10

    asyncio.run(main())


def test_the_envelope_is_read(real_server: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(real_server.endpoint) as client:
            good = await client.call("envelope", {"ok": True})
            bad = await client.call("envelope", {"ok": False})
        assert (good.ok, good.code, good.structured["did"]) == (True, "done", "looked")
        assert (bad.ok, bad.code) == (False, "no_such_file")

    asyncio.run(main())


def test_a_tool_that_says_no_is_a_result_and_not_a_fault(real_server: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(real_server.endpoint) as client:
            said = await client.call("refuse", {"why": "no such sheet"})
            crashed = await client.call("crash", {})
            unknown = await client.call("frobnicate", {})
            wrong = await client.call("echo", {"txt": 1})
            nothing = await client.call("nothing", {})
        assert "no such sheet" in said.text
        assert [each.ok for each in (said, crashed, unknown, wrong, nothing)] == [False] * 4 + [
            True
        ]
        assert "frobnicate" in unknown.text

    asyncio.run(main())


def test_the_call_id_reaches_the_tool(real_server: Any) -> None:
    async def main() -> str:
        async with ToolClient.open(real_server.endpoint) as client:
            return (await client.call("call_id", {}, call_id="call-17")).text

    assert asyncio.run(main()) == "call-17"


def test_a_long_answer_arrives_whole(real_server: Any) -> None:
    async def main() -> int:
        async with ToolClient.open(real_server.endpoint) as client:
            return len((await client.call("big", {"mib": 6})).text)

    assert asyncio.run(main()) == 6 << 20


def test_a_long_answer_on_an_event_stream_arrives_whole(faulty_server: Serve) -> None:
    """The SDK ends a call whose event is longer than 1 MiB unless told otherwise."""

    async def main() -> int:
        async with (
            faulty_server(call="long event") as endpoint,
            ToolClient.open(endpoint) as client,
        ):
            return len((await client.call("look", {})).text)

    assert asyncio.run(main()) == 3 << 20


def test_a_stream_that_breaks_off_is_taken_up_where_it_was(faulty_server: Serve) -> None:
    async def main() -> str:
        async with (
            faulty_server(call="broken stream") as endpoint,
            ToolClient.open(endpoint) as client,
        ):
            return (await client.call("look", {})).text

    assert asyncio.run(main()) == "seen"


def test_a_number_of_more_than_64_bits_is_sent_as_it_is(real_server: Any) -> None:
    async def main() -> str:
        async with ToolClient.open(real_server.endpoint) as client:
            return (await client.call("count", {"number": 1 << 70})).text

    assert asyncio.run(main()) == str(1 << 70)


def test_structured_content_is_held_to_the_schema_that_was_listed(faulty_server: Serve) -> None:
    async def main() -> BaseException | None:
        async with (
            faulty_server(call="against its schema") as endpoint,
            ToolClient.open(endpoint) as client,
        ):
            await client.list_tools()
            return await outcome(client.call("look", {}))

    error = asyncio.run(main())
    assert type(error) is ServerGarbage
    assert "against its schema: $.seen" in str(error)


def test_a_schema_that_is_its_own_reference_is_the_servers_garbage(faulty_server: Serve) -> None:
    async def main() -> BaseException | None:
        async with (
            faulty_server(connect="endless schema") as endpoint,
            ToolClient.open(endpoint) as client,
        ):
            await client.list_tools()
            return await outcome(client.call("look", {}))

    error = asyncio.run(main())
    assert type(error) is ServerGarbage
    assert "no valid output schema" in str(error)


def test_an_argument_that_a_tool_wants_in_a_header_is_there(faulty_server: Serve) -> None:
    async def main() -> str:
        async with (
            faulty_server(call="repeats headers") as endpoint,
            ToolClient.open(endpoint) as client,
        ):
            assert [tool.name for tool in await client.list_tools()] == ["look"]
            return (await client.call("look", {"where": "dänisch"})).text

    sent = asyncio.run(main()).lower().split("\r\n")
    assert "mcp-param-where: =?base64?zmokbmlzy2g=?=" in sent
    assert "mcp-name: look" in sent
    assert "mcp-protocol-version: 2026-07-28" in sent


def test_calls_run_side_by_side_and_a_stuck_one_holds_up_no_other(real_server: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(real_server.endpoint) as client:
            stuck = asyncio.create_task(outcome(client.call("forever", {})))
            echoes = [client.call("echo", {"text": str(number)}) for number in range(20)]
            results = await asyncio.gather(*echoes)
            assert [each.text for each in results] == [str(number) for number in range(20)]
            assert not stuck.done()
            stuck.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("how", ["kill", "die"])
def test_a_killed_server_ends_pending_and_later_calls(mortal_server: Any, how: str) -> None:
    async def main() -> None:
        began = time.monotonic()
        async with ToolClient.open(mortal_server.endpoint) as client:
            waiting = [asyncio.create_task(outcome(client.call("forever", {}))) for _ in range(3)]
            await client.call("echo", {"text": "still here"})
            if how == "kill":
                os.kill(mortal_server.process.pid, signal.SIGKILL)
            else:
                await outcome(client.call("die", {}))
            errors = await asyncio.gather(*waiting)
            assert {type(error) for error in errors} == {ServerDisconnected}
            for _ in range(2):
                assert type(await outcome(client.list_tools())) is ServerDisconnected
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
        assert time.monotonic() - began < SLACK_S

    asyncio.run(main())


def test_a_stopped_server_costs_no_more_than_the_deadlines(mortal_server: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(mortal_server.endpoint, NO_ANSWER) as client:
            os.kill(mortal_server.process.pid, signal.SIGSTOP)
            began = time.monotonic()
            assert isinstance(await outcome(client.call("echo", {"text": "x"})), DeadlineExceeded)
        assert time.monotonic() - began < 2 * HANG_S + SLACK_S

    asyncio.run(main())


def test_a_tool_that_exits_its_server_ends_on_time(mortal_server: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(mortal_server.endpoint, NO_ANSWER) as client:
            began = time.monotonic()
            error = await outcome(client.call("leave", {}))
            assert error is not None
            assert classify(error, Phase.ACT).owner is Owner.SERVER
            assert time.monotonic() - began < HANG_S + SLACK_S

    asyncio.run(main())


def test_a_cancelled_caller_is_cancelled_and_the_client_goes_on(faulty_server: Serve) -> None:
    async def main() -> None:
        async with (
            faulty_server(call="hang") as endpoint,
            ToolClient.open(endpoint) as client,
        ):
            caller = asyncio.create_task(client.call("look", {}))
            await client.list_tools()
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
            assert len(await client.list_tools()) == 1

    asyncio.run(main())


def test_nothing_is_left_running_after_the_client_is_closed(faulty_server: Serve) -> None:
    async def main() -> None:
        async with faulty_server(call="hang") as endpoint:
            before = asyncio.all_tasks()
            for _ in range(3):
                async with ToolClient.open(endpoint, NO_ANSWER) as client:
                    await outcome(client.call("look", {}))
            left = [task for task in asyncio.all_tasks() - before if "mcp" in task.get_name()]
            assert not left
        gc.collect()

    asyncio.run(main())


def test_the_token_is_not_shown() -> None:
    assert "hunter2" not in repr(
        Endpoint(url="http://x/", token="hunter2", headers={"a": "hunter2"})
    )
