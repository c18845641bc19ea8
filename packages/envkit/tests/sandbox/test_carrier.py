# SPDX-License-Identifier: Apache-2.0
"""Carrying files into and out of real boxes whose agents made it hard."""

import contextlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from envkit.deadline import within
from envkit.fault import DiskFull, KilledOwnBox
from envkit.sandbox import carrier
from envkit.sandbox.channel import RequestFailed
from envkit.sandbox.limits import Limits

from .conftest import Room

pytestmark = pytest.mark.integration

type InRoom = Callable[..., Any]


def transfer(room: Room) -> carrier.Transfer:
    async def ask(what: str, path: str, fds: list[int]) -> int:
        answer = await room.session.channel.ask(
            "transfer", fds, box=room.name, what=what, path=path
        )
        return int(answer["status"])

    return ask


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text("from the host\n")
    return path


def test_a_file_goes_in_and_comes_out(in_room: InRoom, note: Path, tmp_path: Path):
    async def both(room: Room) -> None:
        await carrier.send_file(transfer(room), note, PurePosixPath("/logs/artifacts/copy.txt"))
        assert await room.say("cat /logs/artifacts/copy.txt") == "from the host\n"
        await room.say("echo back >> /logs/artifacts/copy.txt")
        await carrier.fetch_file(transfer(room), "/logs/artifacts/copy.txt", tmp_path / "out/copy")

    in_room(both)
    assert (tmp_path / "out/copy").read_text() == "from the host\nback\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["copy"]


def test_a_box_that_never_opened_is_known_at_once_to_who_reads_from_it(
    in_room: InRoom, tmp_path: Path
):
    async def fetch(room: Room) -> None:
        nowhere = Room(room.session, name="never-opened")
        with pytest.raises(RequestFailed, match="never-opened"):
            await within(
                "test", 60, carrier.fetch_dir(transfer(nowhere), "/filesystem", tmp_path / "out")
            )

    in_room(fetch)


def test_what_the_box_holds_is_carried_by_our_code_not_by_its_tar(in_room: InRoom, tmp_path: Path):
    async def replace(room: Room) -> None:
        await room.say(
            "echo kept > /filesystem/kept; printf '#!/bin/sh\\nexit 7\\n' > /usr/bin/tar;"
            " chmod +x /usr/bin/tar; cp /usr/bin/tar /usr/bin/cat"
        )
        await carrier.fetch_dir(transfer(room), "/filesystem", tmp_path / "out")

    in_room(replace)
    assert (tmp_path / "out/kept").read_text() == "kept\n"


def test_a_file_that_is_not_there_is_for_the_caller_to_judge(in_room: InRoom, tmp_path: Path):
    async def fetch(room: Room) -> None:
        await carrier.fetch_file(transfer(room), "/filesystem/never", tmp_path / "never")

    with pytest.raises(FileNotFoundError, match="/filesystem/never is not in the box"):
        in_room(fetch)


def test_files_made_unreadable_are_left_out_and_cost_no_other(in_room: InRoom, tmp_path: Path):
    async def hide(room: Room) -> None:
        await room.say(
            "cd /filesystem; echo a > open; echo b > shut; chmod 000 shut;"
            " mkdir closed; echo c > closed/in; chmod 000 closed; mkdir listed;"
            " echo d > listed/in; chmod 400 listed"
        )
        await carrier.fetch_dir(transfer(room), "/filesystem", tmp_path / "out")

    in_room(hide)
    assert (tmp_path / "out/open").read_text() == "a\n"
    assert not (tmp_path / "out/shut").exists()


@pytest.mark.parametrize("place", ["/proc", "/proc/self", "/dev", "/usr/bin"])
def test_a_link_to_files_that_come_and_go_costs_no_transfer(
    in_room: InRoom, tmp_path: Path, place: str
):
    async def lead_away(room: Room) -> None:
        await room.say(f"rm -rf /logs/artifacts; ln -s {place} /logs/artifacts")
        with contextlib.suppress(DiskFull, FileNotFoundError):
            await carrier.fetch_dir(transfer(room), "/logs/artifacts", tmp_path / "out")

    in_room(lead_away)


def test_a_pipe_in_the_way_does_not_hold_the_carrier(in_room: InRoom, note: Path):
    async def block(room: Room) -> str:
        await room.say(
            'mkfifo /logs/artifacts/answer 2>/dev/null || python3 -c "import os;'
            " os.mkfifo('/logs/artifacts/answer')\""
        )
        await carrier.send_file(transfer(room), note, PurePosixPath("/logs/artifacts/answer"))
        return await room.say("cat /logs/artifacts/answer")

    assert in_room(block) == "from the host\n"


@pytest.mark.parametrize(
    "script",
    [
        "rm -rf /logs/artifacts; echo > /logs/artifacts",
        "mv /logs/artifacts /old; ln -s artifacts /logs/artifacts",
        "chmod 000 /logs/artifacts",
        "mkdir /logs/artifacts/answer",
        "rm -rf /logs/artifacts; ln -s /proc /logs/artifacts",
        "rm -rf /logs/artifacts; ln -s /dev /logs/artifacts",
        "rm -rf /logs/artifacts; ln -s /proc/self/fd /logs/artifacts",
    ],
    ids=["file", "loop", "no permission", "directory", "processes", "devices", "descriptors"],
)
def test_what_stands_in_the_way_is_the_agents_doing(in_room: InRoom, note: Path, script: str):
    async def block(room: Room) -> None:
        await room.say(script)
        await carrier.send_file(transfer(room), note, PurePosixPath("/logs/artifacts/answer"))

    with pytest.raises(KilledOwnBox, match="stands in the way"):
        in_room(block)


def test_a_full_box_is_the_agents_doing(in_room: InRoom, note: Path):
    async def fill(room: Room) -> None:
        await room.run("cat /dev/zero > /filesystem/zeros")
        await carrier.send_file(transfer(room), note, PurePosixPath("/logs/artifacts/answer"))

    with pytest.raises(DiskFull):
        in_room(fill)


def test_a_file_larger_than_the_box_may_be_is_the_agents_doing(in_room: InRoom, tmp_path: Path):
    async def inflate(room: Room) -> None:
        await room.say("truncate -s 1T /filesystem/sparse")
        await carrier.fetch_dir(transfer(room), "/filesystem", tmp_path / "out")

    with pytest.raises(DiskFull):
        in_room(inflate)
    assert not (tmp_path / "out/sparse").exists()


def test_a_box_without_memory_left_can_still_be_carried_from(in_room: InRoom, tmp_path: Path):
    tight = Limits(memory_mib=64, processes=48, storage_mib=256)

    async def use_up(room: Room) -> None:
        await room.say("echo kept > /filesystem/kept")
        done = await room.run("cat /dev/zero > /filesystem/zeros")  # memory ends before storage
        assert done.oom_kills or done.status
        await room.run("truncate -s 0 /filesystem/zeros")
        await carrier.fetch_dir(transfer(room), "/filesystem", tmp_path / "out")

    in_room(use_up, limits=tight)
    assert (tmp_path / "out/kept").read_text() == "kept\n"


def test_a_link_out_of_the_box_does_not_arrive(in_room: InRoom, tmp_path: Path):
    async def link(room: Room) -> None:
        await room.say("ln -s /etc/shadow /filesystem/link; echo kept > /filesystem/kept")
        await carrier.fetch_dir(transfer(room), "/filesystem", tmp_path / "out")

    in_room(link)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kept"]
