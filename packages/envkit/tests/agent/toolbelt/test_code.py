# SPDX-License-Identifier: Apache-2.0
"""The toolbelt of a coding agent in a real box: what it does and refuses, and whose a fault is."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import TaskConfig
from harbor.models.trial.paths import TrialPaths

from envkit.agent.toolbelt.box import Box
from envkit.agent.toolbelt.code import CodeToolbelt
from envkit.agent.toolbelt.scripts import MATCHES
from envkit.agent.types import CallRequest, Observation
from envkit.deadline import DEFAULT_BUDGETS
from envkit.fault import DiskFull, SandboxDied
from envkit.sandbox import session as sessions
from envkit.sandbox.availability import availability
from envkit.sandbox.guard import guard
from envkit.sandbox.ledger import Ledger, begin
from envkit.sandbox.local import LocalEnvironment

from ...trial.tiny import make_task

pytestmark = pytest.mark.integration


class Hands:
    """Calls tools of an open toolbelt."""

    def __init__(self, belt: CodeToolbelt, environment: Any, book: Ledger) -> None:
        self.belt = belt
        self.environment = environment
        self.book = book

    async def do(self, name: str, **arguments: Any) -> Observation:
        request = CallRequest(name=name, arguments=arguments, call_id="call-0-1")
        return await self.belt.call(request)

    async def say(self, name: str, **arguments: Any) -> str:
        """What a call that must succeed says."""
        seen = await self.do(name, **arguments)
        assert seen.ok, seen.text
        return seen.text


@asynccontextmanager
async def _hands(root: Path, task: Path) -> AsyncGenerator[Hands]:
    book = begin()
    config = TaskConfig.model_validate_toml((task / "task.toml").read_text()).environment
    config.mcp_servers = []
    environment: Any = guard(LocalEnvironment)(
        environment_dir=task / "environment",
        environment_name="tiny",
        session_id="tiny__env",
        trial_paths=TrialPaths(trial_dir=root / "trial"),
        task_env_config=config,
    )
    async with sessions.own_session(warm=False) as mine:
        sessions.adopt(mine)
        await environment.start(force_build=False)
        book.enter("act")
        try:
            yield Hands(CodeToolbelt(Box(environment, DEFAULT_BUDGETS)), environment, book)
        finally:
            await environment.stop(delete=True)
            sessions.adopt(None)  # pyright: ignore[reportArgumentType]


def in_box(tmp_path: Path, work: Callable[[Hands], Awaitable[object]], **limits: int) -> Ledger:
    """Do it in a box of the tiny world; the ledger afterwards."""
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")
    task = make_task(tmp_path / "tasks", **limits)

    async def main() -> Ledger:
        async with _hands(tmp_path, task) as hands:
            await work(hands)
            return hands.book

    return asyncio.run(main())


def test_commands_begin_in_the_world_and_say_all_they_say(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        assert await hands.say("bash", command="pwd; ls note.txt") == "/filesystem\nnote.txt\n"
        assert await hands.say("bash", command="echo out; echo err >&2") == "out\nerr\n"
        seen = await hands.do("bash", command="echo no; exit 3")
        assert (seen.ok, seen.code) == (True, "exit_nonzero")
        assert seen.text == "no\n\n[exit status 3]"
        assert "unexpected EOF" in (await hands.do("bash", command="echo 'open")).text
        assert await hands.say("bash", command="cat <<'E'\n$HOME `x`\nE") == "$HOME `x`\n"

    assert in_box(tmp_path, work).faults == []


def test_a_command_that_outlives_its_limit_is_the_models_and_what_it_said_is_kept(
    tmp_path: Path,
) -> None:
    async def work(hands: Hands) -> None:
        seen = await hands.do("bash", command="echo first; sleep 60", timeout=1)
        assert (seen.ok, seen.code, seen.model_owned) == (False, "timed_out", True)
        assert "after 1 s" in seen.text
        assert "first" in seen.text
        assert 1 <= seen.seconds < 30
        assert await hands.say("bash", command="echo alive") == "alive\n"

    book = in_box(tmp_path, work)
    assert [(fault.code, fault.owner.value) for fault in book.faults] == [
        ("EndlessCommand", "model")
    ]
    assert not book.invalid()


def test_files_are_written_read_edited_and_found(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        text = "eins 'zwei' \"drei\" $(rm -rf /)\ngrüße 漢\n"
        await hands.say("write", filePath="new folder/a b.txt", content=text)
        read = await hands.say("read", filePath="/filesystem/new folder/a b.txt")
        assert read == "     1\teins 'zwei' \"drei\" $(rm -rf /)\n     2\tgrüße 漢"
        args = {"filePath": "new folder/a b.txt", "oldString": "$(rm -rf /)", "newString": "\\1&"}
        await hands.say("edit", **args)
        found = await hands.say("bash", command="cat 'new folder/a b.txt'")
        assert found == text.replace("$(rm -rf /)", "\\1&")
        assert await hands.say("glob", pattern="**/*.txt") == (
            "a_long.txt\nnew folder/a b.txt\nnote.txt\n"
        )
        assert await hands.say("grep", pattern="gr.+e", include="*.txt") == (
            "./new folder/a b.txt:2:grüße 漢\n"
        )
        assert "a b.txt" in await hands.say("read", filePath="new folder")
        assert not (await hands.say("bash", command="ls -A /tmp")).strip(), "nothing is left"

    assert in_box(tmp_path, work).faults == []


def test_long_files_are_read_in_parts(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        await hands.say("bash", command="seq 1 5000 > n.txt; : > empty.txt")
        first = await hands.say("read", filePath="n.txt")
        assert first.startswith("     1\t1\n")
        assert first.endswith("  2000\t2000\n[go on with offset 2001]")
        part = await hands.say("read", filePath="n.txt", offset=4999, limit=9)
        assert part == "  4999\t4999\n  5000\t5000"
        assert await hands.say("read", filePath="empty.txt") == "no line there"
        await hands.say("bash", command=r"printf 'a\fb\nc\x1cd\n' > odd.txt")
        assert await hands.say("read", filePath="odd.txt") == "     1\ta\fb\n     2\tc\x1cd"
        big = "x" * 300_000
        await hands.say("write", filePath="big.txt", content=big)
        assert (await hands.say("bash", command="wc -c < big.txt")).strip() == "300000"
        edited = {"filePath": "big.txt", "oldString": "x", "newString": "yy", "replaceAll": True}
        await hands.say("edit", **edited)
        assert (await hands.say("bash", command="wc -c < big.txt")).strip() == "600000"

    in_box(tmp_path, work)


def test_what_is_left_out_of_much_is_no_error(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        await hands.say("bash", command="seq 1 200000 > n.txt")
        read = await hands.say("read", filePath="n.txt")
        assert read.endswith("  2000\t2000\n[go on with offset 2001]")
        found = (await hands.say("grep", pattern="1", path="n.txt")).splitlines()
        assert (len(found), found[1]) == (MATCHES, "10:10")

    assert in_box(tmp_path, work).faults == []


REFUSED: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("read", {"filePath": "gone.txt"}, "failed", "no such file"),
    ("read", {"filePath": "/bin/bash"}, "binary", "no text"),
    ("read", {"filePath": "/dev/zero"}, "failed", "no regular file"),
    ("edit", {"filePath": "gone", "oldString": "a", "newString": "b"}, "failed", "no such"),
    ("edit", {"filePath": "note.txt", "oldString": "zzz", "newString": ""}, "not_found", "occur"),
    ("edit", {"filePath": "note.txt", "oldString": "", "newString": "b"}, "not_found", "occur"),
    ("edit", {"filePath": "note.txt", "oldString": "e", "newString": ""}, "ambiguous", "times"),
    ("edit", {"filePath": "/bin/bash", "oldString": "e", "newString": ""}, "failed", "bytes"),
    ("edit", {"filePath": "raw", "oldString": "e", "newString": ""}, "binary", "no UTF-8"),
    ("write", {"filePath": "/proc/version", "content": "x"}, "failed", ""),
    ("write", {"filePath": "note.txt/x", "content": "x"}, "failed", ""),
    ("write", {"filePath": "/filesystem", "content": "x"}, "failed", "directory"),
    ("grep", {"pattern": "(", "path": "note.txt"}, "failed", ""),
    ("grep", {"pattern": "a", "path": "gone"}, "failed", "no such"),
    ("glob", {"pattern": "*", "path": "gone"}, "failed", "gone"),
    ("bash", {"command": "echo \0"}, "bad_argument", "NUL"),
    ("bash", {"command": "#" * 200_000}, "too_long", "100000"),
    ("bash", {"command": "sleep 9", "timeout": 0}, "bad_argument", "timeout is 0"),
    ("bash", {"command": "sleep 9", "timeout": -5}, "bad_argument", "give 1 or more"),
    ("read", {"filePath": "note.txt", "offset": 0}, "bad_argument", "offset is 0"),
    ("read", {"filePath": "note.txt", "limit": -1}, "bad_argument", "limit is -1"),
    ("nothing", {}, "unknown_tool", "bash"),
)


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        await hands.say("bash", command=r"printf '\377\376e' > raw")
        for name, arguments, code, said in REFUSED:
            seen = await hands.do(name, **arguments)
            assert (name, arguments, seen.ok, seen.code) == (name, arguments, False, code)
            assert said in seen.text
        assert await hands.say("glob", pattern="*.nothing") == "no file matches"
        assert await hands.say("grep", pattern="zzzz", path="note.txt") == "nothing matches"

    assert in_box(tmp_path, work).faults == []


def test_a_full_disk_is_the_models(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        await hands.do("bash", command="head -c 200000000 /dev/zero > full")
        with pytest.raises(DiskFull):
            await hands.do("write", filePath="more.txt", content="x" * 100_000)

    assert not in_box(tmp_path, work, storage_mb=64).invalid()


def test_a_box_that_is_gone_is_raised_and_stands_on_the_ledger(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        await hands.environment.stop(delete=True)
        with pytest.raises(SandboxDied):
            await hands.do("bash", command="true")

    assert in_box(tmp_path, work).invalid()


def test_a_long_result_is_kept_where_commands_read_it(tmp_path: Path) -> None:
    async def work(hands: Hands) -> None:
        path = await hands.belt.keep("call-0-1.txt", "all of it\n")
        assert await hands.say("bash", command=f"cat {path}") == "all of it\n"

    in_box(tmp_path, work)


def test_the_tools_are_those_of_coding_agents() -> None:
    box: Any = None
    names = [tool.name for tool in CodeToolbelt(box).tools]
    assert names == ["bash", "glob", "read", "grep", "write", "edit", "todowrite"]


def test_a_list_of_what_is_to_do_is_said_back() -> None:
    box: Any = None
    todos = [{"id": "1", "content": "grüßen", "status": "pending"}]
    request = CallRequest(name="todowrite", arguments={"todos": todos}, call_id="call-0-1")
    seen = asyncio.run(CodeToolbelt(box).call(request))
    assert (seen.ok, json.loads(seen.text)) == (True, todos)
