# SPDX-License-Identifier: Apache-2.0
"""What code in a box can see, reach and do, tried from inside."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Room

pytestmark = pytest.mark.integration

type InRoom = Callable[..., Any]


def test_nothing_of_the_host_is_visible_but_the_declared_root(in_room: InRoom, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("a key of the host")

    async def look(room: Room) -> list[str]:
        found = await room.run(f"cat {secret}; cat /etc/shadow; cat /etc/machine-id; ls /sys")
        assert found.status != 0
        assert found.stdout == b""
        return (await room.say("ls -1 /")).split()

    top = set(in_room(look))
    assert top == set(
        "bin dev etc filesystem home lib lib64 logs opt proc root run sbin solution tests tmp usr"
        " var".split()
    )


def test_tests_and_solution_are_empty_until_harbor_brings_them(in_room: InRoom):
    async def look(room: Room) -> str:
        return await room.say("find /tests /solution /logs -type f")

    assert in_room(look) == ""


def test_a_process_has_no_capability_and_can_gain_none(in_room: InRoom):
    async def look(room: Room) -> str:
        return await room.say("grep -E '^(Cap|NoNewPrivs)' /proc/self/status")

    lines = dict(line.split(":\t") for line in in_room(look).splitlines())
    assert lines.pop("NoNewPrivs") == "1"
    assert set(lines.values()) == {"0" * 16}


def test_a_process_is_not_the_hosts_root(in_room: InRoom):
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")

    async def look(room: Room) -> str:
        return await room.say("cat /proc/self/uid_map")

    inside, outside, count = in_room(look).split()
    assert (inside, count) == ("0", "1")
    assert outside != "0"


def test_kernel_settings_cannot_be_written(in_room: InRoom):
    async def write(room: Room) -> list[int]:
        targets = ["/proc/sys/kernel/panic", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
        return [(await room.run(f"echo 1 > {path}")).status for path in targets]

    assert all(in_room(write))


def test_there_is_no_network_but_loopback(in_room: InRoom):
    async def look(room: Room) -> Any:
        return await room.python(
            "import json, socket\n"
            "names = [name for _, name in socket.if_nameindex()]\n"
            "try: socket.create_connection(('192.0.2.1', 80), 2); out = 'connected'\n"
            "except OSError as error: out = error.strerror\n"
            "print(json.dumps([names, out]))"
        )

    names, out = in_room(look)
    assert names == ["lo"]
    assert out == "Network is unreachable"


def test_a_listening_socket_of_the_host_is_out_of_reach(in_room: InRoom):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        async def connect(room: Room) -> Any:
            return await room.python(
                "import json, socket\n"
                f"try: socket.create_connection(('127.0.0.1', {port}), 2); out = 'connected'\n"
                "except OSError as error: out = error.strerror\n"
                "print(json.dumps(out))"
            )

        assert in_room(connect) == "Connection refused"


def test_no_descriptor_of_the_fork_server_is_inherited(in_room: InRoom):
    async def look(room: Room) -> Any:
        return await room.python(
            "import json, os\n"
            "print(json.dumps({n: os.readlink(f'/proc/self/fd/{n}')"
            " for n in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{n}')}))"
        )

    assert set(in_room(look)) == {"0", "1", "2"}


def test_the_environment_holds_only_what_was_given(in_room: InRoom, monkeypatch: Any):
    monkeypatch.setenv("SECRET_API_KEY", "value-of-the-host")

    async def look(room: Room) -> str:
        return await room.say("env; cat /proc/1/environ | tr '\\0' '\\n'")

    names = {line.split("=")[0] for line in in_room(look).splitlines()}
    assert names <= {"PATH", "HOME", "LANG", "ENVKIT_RUN", "PWD", "SHLVL", "_"}


def test_the_root_can_be_written_and_is_thrown_away(in_room: InRoom, root: Path):
    async def write(room: Room) -> str:
        return await room.say("echo mine > /usr/bin/mine; mkdir /new; cat /usr/bin/mine")

    assert in_room(write) == "mine\n"
    assert not (root / "usr/bin/mine").exists()

    async def look(room: Room) -> int:
        return (await room.run("test -e /usr/bin/mine")).status

    assert in_room(look) == 1


def test_a_world_is_shared_read_only_and_changed_only_in_the_box(in_room: InRoom, tmp_path: Path):
    from envkit.sandbox.stage import files_uid

    world = tmp_path / "world"
    (world / "filesystem").mkdir(parents=True)
    (world / "apps_data").mkdir()
    document = world / "filesystem/memo.txt"
    document.write_text("as it was\n")
    for path in (world, world / "filesystem", document):
        os.chown(path, files_uid(), files_uid())

    async def change(room: Room) -> str:
        return await room.say("echo changed >> /filesystem/memo.txt; cat /filesystem/memo.txt")

    assert in_room(change, world=world) == "as it was\nchanged\n"
    assert document.read_text() == "as it was\n"


def test_python_and_python3_are_the_same_interpreter(in_room: InRoom):
    async def ask(room: Room) -> str:
        return await room.say("python -V; python3 -V; command -v python python3")

    first, second, *_ = in_room(ask).splitlines()
    assert first == second


def test_the_call_ends_with_the_command_not_with_what_it_left_behind(in_room: InRoom):
    async def leave(room: Room) -> tuple[bool, bytes]:
        done = await room.run("sleep 1000 & echo started", timeout_s=20)
        return done.timed_out, done.stdout

    assert in_room(leave) == (False, b"started\n")


def test_a_program_whose_reader_has_gone_ends_by_the_signal_and_in_silence(in_room: InRoom):
    async def pipe(room: Room) -> tuple[bytes, bytes]:
        done = await room.run("seq 1 200000 | head -n 1; echo ${PIPESTATUS[0]}")
        return done.stdout, done.stderr

    assert in_room(pipe) == (b"1\n141\n", b"")


def test_orphans_are_reaped_by_process_1(in_room: InRoom):
    async def orphan(room: Room) -> str:
        await room.say("for i in 1 2 3 4 5; do (setsid true &) ; done")
        return await room.say("for p in /proc/[0-9]*; do grep -s '^State:.Z' $p/status; done; true")

    assert in_room(orphan) == ""
