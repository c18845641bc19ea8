# SPDX-License-Identifier: Apache-2.0
"""A world may offer a few of its servers' tools: they are all that is listed and called."""

from __future__ import annotations

from pathlib import Path

import pytest

from envkit.fault import TaskError
from envkit.task import lint, load_world_dir

from .test_load import MINIMAL, make_task

READ, COPY = "filesystem_server_read_text_file", "filesystem_server_copy_file"


def world(place: Path, *lines: str) -> Path:
    """A world of the server of files, with more lines in its world.toml."""
    (place / "filesystem").mkdir(parents=True)
    text = "\n".join(['servers = ["filesystem_server"]', *lines])
    (place / "world.toml").write_text(f"{text}\n")
    return place


def test_a_world_that_says_nothing_offers_all_and_expects_nothing(tmp_path: Path) -> None:
    read = load_world_dir(world(tmp_path / "w"))
    assert (read.tools, read.expected_tools) == ((), ())


@pytest.mark.parametrize("also", ["", f'expected_tools = ["{COPY}", "{READ}"]'])
def test_tools_that_are_offered_are_those_expected(tmp_path: Path, also: str) -> None:
    read = load_world_dir(world(tmp_path / "w", f'tools = ["{READ}", "{COPY}"]', also))
    assert read.tools == (READ, COPY)
    assert {*read.expected_tools} == {READ, COPY}


@pytest.mark.parametrize(("lines", "says"), [
    (['tools = ["pdf_server_search_pdf"]'],
     r"world\.toml:tools: pdf_server_search_pdf belongs to no server; servers: filesystem_server"),
    ([f'tools = ["{READ}"]', f'expected_tools = ["{READ}", "{COPY}"]'],
     r"world\.toml:expected_tools: not the tools that are offered; leave it out"),
    (["tools = 3"], r"world\.toml:tools: not a list of strings"),
])  # fmt: skip
def test_what_cannot_be_offered_is_refused(tmp_path: Path, lines: list[str], says: str) -> None:
    with pytest.raises(TaskError, match=says):
        load_world_dir(world(tmp_path / "w", *lines))


def test_a_recorded_call_of_a_tool_that_is_not_offered_is_a_problem(tmp_path: Path) -> None:
    world(tmp_path / "worlds/w", f'tools = ["{READ}"]')
    task = make_task(tmp_path / "task", f'{MINIMAL}[metadata]\nworld = "w"\n')
    lines = "".join(f'{{"tool": "{tool}", "arguments": {{}}}}\n' for tool in (READ, COPY))
    (task / "solution/calls.jsonl").write_text(lines)
    found = [problem for problem in lint(task) if problem.code == "calls-invalid"]
    assert [(each.where, each.message) for each in found] == [
        ("solution/calls.jsonl:2", f"{COPY} is not offered by the world")
    ]


def test_a_gateway_offers_what_its_configuration_names_and_nothing_else() -> None:
    from envkit.servers import catalog
    from envkit.servers.config import GatewayConfig
    from envkit.servers.contract import ToolFault

    everything = catalog.offered(GatewayConfig())
    few = catalog.offered(GatewayConfig(tools=(COPY, READ)))
    assert {*few} == {COPY, READ} < {*everything}
    assert {*catalog.offered(GatewayConfig(tools=(COPY, READ), read_only=True))} == {READ}
    assert catalog.offered(GatewayConfig(servers=("pdf_server",), tools=(READ,))) == {}
    with pytest.raises(ToolFault, match="no tool"):
        catalog.find(few, "filesystem_server_write_file", read_only=False)
