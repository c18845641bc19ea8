# SPDX-License-Identifier: Apache-2.0
"""The client and the SDK's own servers: both eras, with and without sessions, JSON and events."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from envkit.agent.mcp_client import Endpoint, ToolClient
from envkit.deadline import DEFAULT_BUDGETS, DeadlineExceeded

pytestmark = pytest.mark.integration

KINDS = [
    flags
    for number in range(4)
    for flags in itertools.combinations(("--old", "--stateful", "--events"), number)
]
IMPATIENT = replace(DEFAULT_BUDGETS, mcp_call_s=1.0)


@pytest.fixture(scope="module", params=KINDS, ids=lambda flags: " ".join(flags) or "plain")
def kind(
    request: pytest.FixtureRequest, start_server: Any
) -> Iterator[tuple[Endpoint, tuple[str, ...]]]:
    flags: tuple[str, ...] = request.param
    with start_server(*flags) as server:
        yield server.endpoint, flags


def test_tools_are_listed_and_called(kind: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(kind[0]) as client:
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert tools["echo"].description == "Say it back."
            assert tools["echo"].input_schema["properties"]["text"]["type"] == "string"
            words = [f"wörd {number}\n" for number in range(10)]
            results = await asyncio.gather(*(client.call("echo", {"text": w}) for w in words))
            assert [each.text for each in results] == words
            assert (await client.call("envelope", {"ok": False})).code == "no_such_file"
            assert (await client.call("call_id", {}, call_id="call-7")).text == "call-7"

    asyncio.run(main())


def test_what_a_tool_or_the_protocol_refuses_is_a_result(kind: Any) -> None:
    async def main() -> None:
        async with ToolClient.open(kind[0]) as client:
            for name, arguments in (("refuse", {"why": "no"}), ("frobnicate", {}), ("echo", {})):
                assert not (await client.call(name, arguments)).ok

    asyncio.run(main())


def test_progress_is_passed_over_and_a_question_declined(kind: Any) -> None:
    endpoint, flags = kind

    async def main() -> str:
        async with ToolClient.open(endpoint) as client:
            return (await client.call("chatty", {})).text

    by_server = "declined: -32600"  # the question has no stream to travel on
    by_us = "declined: -32601"
    answers = {("--old", "--stateful"): by_server, ("--old", "--stateful", "--events"): by_us}
    assert asyncio.run(main()) == answers.get(flags, "nobody asked")


def test_a_long_answer_arrives_whole(kind: Any) -> None:
    async def main() -> int:
        async with ToolClient.open(kind[0]) as client:
            return len((await client.call("big", {"mib": 6})).text)

    assert asyncio.run(main()) == 6 << 20


def test_a_server_learns_that_a_caller_has_gone(kind: Any) -> None:
    endpoint, flags = kind
    # elsewhere the SDK's server listens to nobody while its tool works
    told = ("--stateful" if "--old" in flags else "--events") in flags

    async def main() -> None:
        async with ToolClient.open(endpoint) as client:
            before = int((await client.call("calls_given_up", {})).text)
            async with ToolClient.open(endpoint, IMPATIENT) as other:
                with pytest.raises(DeadlineExceeded):
                    await other.call("forever", {})
                assert (await client.call("echo", {"text": "here"})).text == "here"
            async with asyncio.timeout(10):
                while told and int((await client.call("calls_given_up", {})).text) == before:
                    pass

    asyncio.run(main())
