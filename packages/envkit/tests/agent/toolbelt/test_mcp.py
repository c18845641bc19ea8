# SPDX-License-Identifier: Apache-2.0
"""The toolbelt of the trial's servers: all their tools, or no episode at all."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envkit.agent.mcp_client import Endpoint
from envkit.agent.toolbelt.box import Box
from envkit.agent.toolbelt.mcp import KEPT_IN_WORLD, McpToolbelt, Server, open_mcp
from envkit.agent.types import CallRequest
from envkit.deadline import DEFAULT_BUDGETS
from envkit.fault import ExtraTools, MissingTools, TaskError
from envkit.sandbox.ledger import begin

from ...servers.documents import small_image
from .gateway import EXEC, TOKEN, gateway

pytestmark = pytest.mark.integration

LISTED = ("filesystem_server_list_files", EXEC)


class Desk:
    """As much of an environment as a toolbelt touches: a folder stands for ``/``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self.root / target_path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, target)

    async def exec(self, command: str, *, timeout_sec: int | None = None) -> Any:
        here = command.replace(KEPT_IN_WORLD, str(self.root) + KEPT_IN_WORLD)
        process = await asyncio.create_subprocess_exec("bash", "-c", here)
        return SimpleNamespace(return_code=await process.wait(), stdout="")


def with_belt(
    root: Path, work: Callable[[McpToolbelt], Awaitable[object]], *expected: str, servers: int = 1
) -> None:
    """Open the toolbelt over so many real gateways."""

    async def main() -> None:
        async with gateway(root / "filesystem") as port:
            endpoint = Endpoint(url=f"http://127.0.0.1:{port}/mcp/", token=TOKEN)
            each = Server(endpoint=endpoint, journals=True)
            box = Box(Desk(root), DEFAULT_BUDGETS)
            async with open_mcp([each] * servers, box, DEFAULT_BUDGETS, expected) as belt:
                await work(belt)

    asyncio.run(main())


def test_every_tool_is_there_under_the_name_it_is_served_by(tmp_path: Path) -> None:
    async def work(belt: McpToolbelt) -> None:
        names = [tool.name for tool in belt.tools]
        assert set(LISTED) <= set(names)
        spec = belt.tools[names.index(EXEC)]
        assert spec.description
        assert "code" in spec.parameters["properties"]

    with_belt(tmp_path, work)


def test_a_call_is_carried_out_and_an_error_is_one(tmp_path: Path) -> None:
    async def work(belt: McpToolbelt) -> None:
        call = CallRequest(name=EXEC, arguments={"code": "echo hi"}, call_id="call-0-1")
        seen = await belt.call(call)
        assert seen.ok
        assert "hi" in seen.text
        assert seen.seconds > 0
        wrong = CallRequest(name=LISTED[0], arguments={"path": "/nowhere"}, call_id="call-0-2")
        seen = await belt.call(wrong)
        assert not seen.ok
        assert seen.model_owned
        assert seen.code
        gone = await belt.call(CallRequest(name="nothing", arguments={}, call_id="call-0-3"))
        assert (gone.ok, gone.code) == (False, "unknown_tool")

    with_belt(tmp_path, work)


def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    async def work(belt: McpToolbelt) -> None:
        name = "filesystem_server_read_image_file"
        look = CallRequest(name=name, arguments={"file_path": "/p.png"}, call_id="call-0-1")
        seen = await belt.call(look)
        assert seen.ok
        assert seen.text.endswith("[1 of its parts cannot be shown to you: they are no text]")

    (tmp_path / "filesystem").mkdir()
    small_image(tmp_path / "filesystem" / "p.png")
    with_belt(tmp_path, work)


def test_tools_that_are_missing_are_no_smaller_toolbelt(tmp_path: Path) -> None:
    async def never(_: McpToolbelt) -> None:
        pytest.fail("opened")

    begin()
    with pytest.raises(MissingTools, match="mail_server_send"):
        with_belt(tmp_path, never, *LISTED, "mail_server_send")
    with pytest.raises(ExtraTools):
        with_belt(tmp_path, never, EXEC)


def test_two_servers_with_one_name_are_the_tasks_fault(tmp_path: Path) -> None:
    async def never(_: McpToolbelt) -> None:
        pytest.fail("opened")

    with pytest.raises(TaskError, match="two servers list"):
        with_belt(tmp_path, never, servers=2)


def test_a_long_result_lies_where_a_command_can_read_it(tmp_path: Path) -> None:
    async def work(belt: McpToolbelt) -> None:
        assert await belt.keep("call-0-1.txt", "all\n") == "/tmp/tool_results/call-0-1.txt"

    with_belt(tmp_path, work)
    assert (tmp_path / "tmp/tool_results/call-0-1.txt").read_text() == "all\n"


def test_without_commands_it_lies_in_the_world_and_is_gone_when_the_episode_ends(
    tmp_path: Path,
) -> None:
    async def work(belt: McpToolbelt) -> None:
        del belt._by_name[EXEC]  # pyright: ignore[reportPrivateUsage]
        path = await belt.keep("call-0-1.txt", "all\n")
        assert path == f"{KEPT_IN_WORLD}/call-0-1.txt"
        assert (tmp_path / path.lstrip("/")).read_text() == "all\n"
        read = CallRequest(
            name="filesystem_server_read_text_file",
            arguments={"file_path": path.removeprefix("/filesystem")},
            call_id="call-1-1",
        )
        assert "all" in (await belt.call(read)).text

    with_belt(tmp_path, work)
    assert not (tmp_path / KEPT_IN_WORLD.lstrip("/")).exists()
