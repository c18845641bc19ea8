# SPDX-License-Identifier: Apache-2.0
"""Commands on this machine, and what code_exec makes of how they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.sandbox.output import HeadTail
from envkit.servers.command import CommandResult, LocalRunner
from envkit.servers.config import GatewayConfig, ToolLimits
from envkit.servers.desk import Desk

from .conftest import call

CODE = "code_execution_server_code_exec"
ENV = {"PATH": os.environ["PATH"]}


def sh(script: str, timeout_s: float = 5, max_output: int = 100_000) -> CommandResult:
    return asyncio.run(
        LocalRunner().run(
            ["sh", "-c", script], cwd="/", env=ENV, timeout_s=timeout_s, max_output=max_output
        )
    )


def test_output_and_exit_code_come_back() -> None:
    ended = sh("echo out; echo err >&2; exit 3")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (3, b"out\n", b"err\n")


def test_a_signal_is_a_negative_exit_code() -> None:
    assert sh("kill -9 $$").exit_code == -9


def test_standard_input_is_empty() -> None:
    assert sh("cat; read x || echo none").stdout == b"none\n"


def test_the_environment_is_the_given_one() -> None:
    assert b"HOME=" not in sh("env").stdout


def test_a_child_in_the_background_does_not_hold_the_call() -> None:
    ended = sh("sleep 30 & echo started")
    assert (ended.exit_code, ended.stdout) == (0, b"started\n")
    assert ended.seconds < 2


def test_a_command_out_of_time_is_killed_with_its_group(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    ended = sh(f"(sleep 1; touch {mark}) & echo before; sleep 30", timeout_s=0.3)
    assert (ended.timed_out, ended.exit_code, ended.stdout) == (True, None, b"before\n")
    time.sleep(1.2)
    assert not mark.exists()


def test_a_command_that_ignores_signals_is_killed_too() -> None:
    began = time.monotonic()
    assert sh("trap '' TERM INT HUP; while :; do :; done", timeout_s=0.3).timed_out
    assert time.monotonic() - began < 3


def test_endless_output_is_bounded_and_counted() -> None:
    ended = sh("yes | head -c 50000000; echo end", max_output=1000)
    assert len(ended.stdout) < 1100
    assert ended.stdout.endswith(b"end\n")
    assert ended.dropped_bytes == 50_000_000 + 4 - 1000


@given(st.lists(st.binary(max_size=50)), st.integers(2, 80))
def test_head_and_tail_keep_the_ends_and_count_the_rest(pieces: list[bytes], limit: int) -> None:
    kept = HeadTail(limit)
    for piece in pieces:
        kept.feed(piece)
    whole, half = b"".join(pieces), limit // 2
    if kept.dropped:
        assert kept.bytes().startswith(whole[:half])
        assert kept.bytes().endswith(whole[-half:])
        assert kept.dropped == len(whole) - 2 * half
    else:
        assert kept.bytes() == whole


def test_a_failing_command_is_no_error_of_the_tool(desk: Desk) -> None:
    reply = call(desk, CODE, {"code": "grep zebra notes.txt"})
    assert not reply.is_error
    assert reply.envelope["code"] == "exit_nonzero"
    assert reply.envelope["counts"]["exit_code"] == 1
    assert reply.texts[0] == "Command failed with exit code 1"


@pytest.mark.parametrize(
    ("code", "language", "expected"),
    [
        ("print(6 * 7)", "auto", "42"),
        ("# a comment\nimport os\nprint(os.getcwd())", "auto", "/filesystem"),
        ("x = 1\nx + 1\nprint(x)", "auto", "1"),
        ("print('unclosed", "auto", "SyntaxError"),
        ("ls", "auto", "notes.txt"),
        ("ls -la", "auto", "notes.txt"),
        ("A=1; echo $A", "auto", "1"),
        ("[[ a == a ]] && echo bash", "auto", "bash"),
        ("1 + 1", "python", "exit code 0"),
        ("echo 'import os'", "auto", "import os"),
    ],
)
def test_shell_and_python_are_told_apart(desk: Desk, code, language, expected) -> None:
    reply = call(desk, CODE, {"code": code, "language": language})
    assert not reply.is_error
    assert expected in reply.texts[0]


def test_a_timeout_carries_the_output_so_far(desk: Desk) -> None:
    reply = call(desk, CODE, {"code": "echo early; sleep 30", "timeout_s": 0.3})
    assert reply.envelope["code"] == "command_timed_out"
    assert reply.envelope["owner"] == "model"
    assert reply.texts[1] == "Output so far:\nearly"


def test_long_output_is_shown_at_both_ends_and_kept_in_a_file(config: GatewayConfig) -> None:
    desk = Desk(replace(config, limits=ToolLimits(text_chars=2000)), LocalRunner())
    reply = call(desk, CODE, {"code": "seq 1 200000"})
    assert len(reply.texts[0]) < 2300
    assert reply.texts[0].startswith("1\n2\n")
    assert reply.texts[0].endswith("200000")
    path = Path(reply.envelope["paths"][0])
    assert str(path) in reply.texts[0]
    assert len(path.read_text().splitlines()) > 100_000
    path.unlink()
    with contextlib.suppress(OSError):
        path.parent.rmdir()
    desk.close()


class Ending:
    """A runner whose box ends every command in one way."""

    def __init__(self, result: CommandResult) -> None:
        self.result = result

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        max_output: int,
    ) -> CommandResult:
        return self.result


KILLED = CommandResult(exit_code=-9, stdout=b"so far", stderr=b"")


@pytest.mark.parametrize(
    ("result", "code", "owner"),
    [
        (replace(KILLED, limit="memory"), "out_of_memory", "model"),
        (replace(KILLED, limit="processes"), "process_limit", "model"),
        (replace(KILLED, limit="disk"), "disk_full", "model"),
        (replace(KILLED, exit_code=None, box_restarted=True), "box_restarted", "model"),
        (replace(KILLED, exit_code=None, timed_out=True), "command_timed_out", "model"),
        (replace(KILLED, exit_code=None), "no_exit_code", "sandbox"),
    ],
)
def test_what_a_command_does_to_its_box_is_said(config, result, code, owner) -> None:
    desk = Desk(config, Ending(result))
    reply = call(desk, CODE, {"code": "true"})
    assert (reply.envelope["code"], reply.envelope["owner"]) == (code, owner)
    assert reply.is_error
    assert "so far" in reply.texts[1]
    desk.close()


def test_a_command_that_survived_a_limit_is_a_success_with_a_note(config) -> None:
    desk = Desk(config, Ending(replace(KILLED, exit_code=0, limit="memory")))
    reply = call(desk, CODE, {"code": "true"})
    assert not reply.is_error
    assert "memory limit" in reply.texts[0]
    desk.close()


@pytest.mark.parametrize("code", ["", "  \n", "a\0b", "x" * 200_000])
def test_code_that_cannot_be_run_is_refused(desk: Desk, code: str) -> None:
    reply = call(desk, CODE, {"code": code})
    assert reply.envelope["field"] == "code"
    assert len(reply.texts[0]) < 500


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (replace(KILLED, limit="memory"), []),
        (replace(KILLED, exit_code=None, timed_out=True), []),
        (replace(KILLED, exit_code=None), [(CODE, "no_exit_code")]),
        (replace(KILLED, exit_code=0), []),
    ],
    ids=["memory", "timeout", "unknown end", "success"],
)
def test_only_what_the_caller_did_not_cause_is_told_to_the_host(
    config: GatewayConfig, result: CommandResult, told: list[tuple[str, str]]
) -> None:
    heard: list[tuple[str, str]] = []
    desk = Desk(config, Ending(result), lambda tool, code: heard.append((tool, code)))
    call(desk, CODE, {"code": "true"})
    desk.close()
    assert heard == told
