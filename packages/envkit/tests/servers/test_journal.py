# SPDX-License-Identifier: Apache-2.0
"""A call id runs once, over restarts, torn lines and impatient senders."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.servers.command import CommandResult, LocalRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.contract import Done, success
from envkit.servers.desk import Desk
from envkit.servers.journal import Journal, digest

from .conftest import call

WRITE = "filesystem_server_write_file"
CODE = "code_execution_server_code_exec"
CALL = digest("tool", {"a": 1})
REPLY = success(Done(did="did it", counts={"n": 1}))


def known(journal: Journal, call_id: str, of: str = CALL):
    return asyncio.run(journal.known(call_id, of))


def finished(path: Path | None, *ids: str) -> Journal:
    async def fill() -> Journal:
        journal = Journal(path)
        for call_id in ids:
            journal.intend(call_id, CALL)
            journal.finish(call_id, REPLY)
        return journal

    return asyncio.run(fill())


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_resent_id_gets_the_stored_reply(tmp_path: Path, in_memory: bool) -> None:
    journal = finished(None if in_memory else tmp_path / "j", "a", "b")
    assert known(journal, "a") == REPLY
    assert known(journal, "c") is None


def test_replies_survive_a_restart(tmp_path: Path) -> None:
    finished(tmp_path / "j", "a", "b").close()
    journal = Journal(tmp_path / "j")
    assert known(journal, "b") == REPLY


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_costs_only_its_own_call(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    finished(path, "a", "b").close()
    path.write_bytes(path.read_bytes()[:-cut])

    async def go_on() -> Journal:
        journal = Journal(path)
        journal.intend("c", CALL)
        journal.finish("c", REPLY)
        return journal

    asyncio.run(go_on()).close()
    journal = Journal(path)
    assert known(journal, "a") == REPLY
    assert known(journal, "c") == REPLY
    torn = known(journal, "b")
    assert torn is not None
    assert torn == REPLY if cut == 1 else torn.envelope["code"] == "outcome_unknown"


def test_garbage_in_the_journal_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "j"
    finished(path, "a").close()
    path.write_bytes(b'\x00\xff\n[]\n{"kind":"result","id":"z"}\n' + path.read_bytes())
    assert known(Journal(path), "a") == REPLY


def test_an_id_of_another_call_is_refused(tmp_path: Path) -> None:
    journal = finished(None, "a")
    reply = known(journal, "a", digest("tool", {"a": 2}))
    assert reply is not None
    assert reply.envelope["code"] == "call_id_conflict"


def test_the_digest_ignores_the_order_of_arguments() -> None:
    assert digest("t", {"a": 1, "b": 2}) == digest("t", {"b": 2, "a": 1})


def test_a_call_sent_twice_at_once_runs_once(desk: Desk, root: Path) -> None:
    async def twice():
        code = {"code": "echo x >> count.txt; sleep 0.3; wc -l < count.txt"}
        return await asyncio.gather(*(desk.call(CODE, code, "same") for _ in range(5)))

    replies = asyncio.run(twice())
    assert all(reply == replies[0] for reply in replies)
    assert (root / "count.txt").read_text() == "x\n"


def test_a_failed_call_is_stored_too(desk: Desk, root: Path) -> None:
    arguments = {"file_path": "/notes.txt", "content": "x"}
    assert call(desk, WRITE, arguments, "w").envelope["code"] == "already_exists"
    (root / "notes.txt").unlink()
    assert call(desk, WRITE, arguments, "w").envelope["code"] == "already_exists"
    assert not (root / "notes.txt").exists()


def test_a_cancelled_command_has_an_unknown_outcome(desk: Desk) -> None:
    async def cancel():
        task = asyncio.create_task(desk.call(CODE, {"code": "sleep 30"}, "c"))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        return await desk.call(CODE, {"code": "sleep 30"}, "c")

    assert asyncio.run(cancel()).envelope["code"] == "outcome_unknown"


def test_a_cancelled_read_may_be_sent_again(desk: Desk) -> None:
    name, arguments = "filesystem_server_list_files", {"path": "/"}

    async def cancel():
        task = asyncio.create_task(desk.call(name, arguments, "r"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return await desk.call(name, arguments, "r")

    assert not asyncio.run(cancel()).is_error


def test_the_journal_holds_one_json_object_a_line(config: GatewayConfig, tmp_path: Path) -> None:
    path = tmp_path / "j"
    desk = Desk(replace(config, journal=path), LocalRunner())
    call(desk, WRITE, {"file_path": "/a\n.txt", "content": "x"}, "id\nwith newline")
    desk.close()
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds == ["intent", "result"]


class Failing:
    """A runner whose box is lost."""

    async def run(self, *_args: object, **_options: object) -> CommandResult:
        raise ConnectionResetError("the box is gone")


def test_a_lost_box_is_a_fault_of_the_sandbox(config: GatewayConfig) -> None:
    desk = Desk(config, Failing())
    envelope = call(desk, CODE, {"code": "true"}).envelope
    assert (envelope["code"], envelope["owner"]) == ("runner_failed", "sandbox")
    assert envelope["applied"] == "unknown"
    desk.close()
