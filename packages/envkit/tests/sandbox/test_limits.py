# SPDX-License-Identifier: Apache-2.0
"""A box's ceilings, with control groups and with rlimits alone: they hold, and are told apart."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from envkit.sandbox.cgroup import find_parent
from envkit.sandbox.limits import Limits, Usage
from envkit.sandbox.session import Session, own_session
from envkit.sandbox.spec import BoxSpec

from .conftest import Room

pytestmark = pytest.mark.integration

LIMITS = Limits(memory_mib=96, processes=24, storage_mib=16, cpus=0.5, open_files=64)

SIGKILL = 128 + 9
HOLD_64 = "x = bytearray(64 << 20); open('/tmp/held{}', 'w').close(); input()"
FORK_40 = """\
import os, signal
made = []
try:
    for _ in range(40):
        child = os.fork()
        if child == 0:
            signal.pause()
        made.append(child)
    print("all")
except BlockingIOError:
    print(len(made))
finally:
    for child in made:
        os.kill(child, signal.SIGKILL)
"""

CGROUPS = pytest.mark.parametrize("kind", ["cgroups", "warm"], indirect=True, scope="module")

type Limited = Callable[[Callable[[Room], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(params=["cgroups", "rlimits", "warm"], scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    """What holds the limits of the box; ``warm`` are groups, with interpreters that are forks."""
    if request.param != "rlimits" and find_parent() is None:
        pytest.skip("not run: no control group can be made here")
    return request.param


@pytest.fixture(scope="module")
def shared(root: Path, kind: str) -> Iterator[tuple[asyncio.Runner, Session]]:
    """A loop with a fork server, for all tests of a kind."""
    with asyncio.Runner() as runner:
        roots = [root] if kind == "warm" else []
        opening = own_session(warm=False, cgroups=kind != "rlimits", roots=roots)
        session = runner.run(opening.__aenter__())
        yield runner, session
        runner.run(opening.__aexit__(None, None, None))


@pytest.fixture
def limited(root: Path, shared: tuple[asyncio.Runner, Session]) -> Limited:
    """Run ``test(room)`` in a box of its own with LIMITS."""
    runner, session = shared

    def run(test: Callable[[Room], Coroutine[Any, Any, Any]]) -> Any:
        async def whole() -> Any:
            room = Room(session, session.box_name("agent"))

            def hear(*said: str) -> None:
                room.events.append(" ".join(said))

            session.handlers[room.name] = hear
            spec = BoxSpec(name=room.name, root=root, limits=LIMITS)
            await room.ask("open", spec=spec.to_dict())
            try:
                return await test(room)
            finally:
                await room.ask("close")

        return runner.run(whole())

    return run


async def _usage(room: Room) -> Usage:
    answer = await room.ask("usage")
    return Usage(**{name: answer[name] for name in Usage.__slots__})


async def _is_well(room: Room) -> bool:
    return (await room.say("echo well")) == "well\n" and room.events == []


async def _is_empty(room: Room) -> bool:
    """Whether nothing is left but process 1 and this command; what was killed takes a moment."""
    count = "(set -- /proc/[0-9]*; echo $#)"
    done = await room.run(f"while [ $({count}) -gt 4 ]; do :; done", timeout_s=10)
    return not done.timed_out


def test_a_process_that_wants_more_memory_than_the_box_has(limited: Limited, kind: str) -> None:
    async def want(room: Room) -> Any:
        done = await room.run("python3 -c 'x = bytearray(1 << 30)'")
        return done, await _usage(room), await _is_well(room)

    done, usage, well = limited(want)
    assert well
    if kind != "rlimits":
        assert (done.status, done.oom_kills, usage.oom_kills) == (SIGKILL, 1, 1)
        assert usage.ran_out_of_memory(LIMITS)
        assert usage.peak_memory_mib <= LIMITS.memory_mib
    else:  # the allocation fails, and Python says so
        assert (done.status, done.oom_kills, usage.oom_kills) == (1, 0, 0)
        assert b"MemoryError" in done.stderr


@CGROUPS  # rlimits know one process only
def test_processes_that_want_too_much_memory_together(limited: Limited) -> None:
    async def want(room: Room) -> Any:
        script = "\n".join(
            f'python3 -c "{HOLD_64.format(number)}" < <(tail -f /dev/null) & pids+=" $!"'
            for number in (1, 2)
        )
        done = await room.run(f"{script}\nwait -n $pids; echo $?")
        return done, await _usage(room), await _is_well(room)

    done, usage, well = limited(want)
    assert done.stdout.split() == [b"137"]
    assert usage.oom_kills >= 1
    assert well


@CGROUPS  # rlimits do not see the pages of files
def test_files_count_as_memory_of_the_box(limited: Limited) -> None:
    async def write(room: Room) -> Usage:
        await room.run("cat /dev/zero > /filesystem/fill")
        return await _usage(room)

    usage = limited(write)
    assert usage.peak_memory_mib >= LIMITS.storage_mib
    assert usage.oom_kills == 0


def test_more_processes_than_the_box_may_have(limited: Limited, kind: str) -> None:
    async def fork(room: Room) -> Any:
        done = await room.run(f"python3 - <<'PROGRAM'\n{FORK_40}\nPROGRAM")
        return done, await _usage(room), await _is_well(room)

    done, usage, well = limited(fork)
    assert well
    assert int(done.stdout) < LIMITS.processes
    refusals = (done.fork_refusals, usage.fork_refusals)
    assert refusals == ((1, 1) if kind != "rlimits" else (0, 0))


def test_more_bytes_than_the_box_may_write_wherever_they_go(limited: Limited) -> None:
    async def fill(room: Room) -> Any:
        first = await room.run("cat /dev/zero > /filesystem/fill")
        second = await room.run("echo more > /tmp/more && cat /dev/zero > /tmp/more")
        full = await _usage(room)
        await room.say("rm /filesystem/fill")
        return first, second, full, await _usage(room), await _is_well(room)

    first, second, full, freed, well = limited(fill)
    assert b"No space left on device" in first.stderr
    assert second.status != 0
    assert (first.disk_full, full.disk_full, freed.disk_full) == (True, True, False)
    assert well


def test_every_place_that_can_be_written_has_a_bound(limited: Limited) -> None:
    async def look(room: Room) -> Any:
        return await room.python(
            "import json, os\n"
            "found = {}\n"
            "for line in open('/proc/self/mounts'):\n"
            "    place = line.split()[1]\n"
            "    if not os.path.isdir(place): continue\n"
            "    try: open(os.path.join(place, 'mine'), 'w').close()\n"
            "    except OSError: continue\n"
            "    size = os.statvfs(place)\n"
            "    found[place] = size.f_blocks * size.f_frsize >> 20\n"
            "open('/dev/null', 'w').write('x')\n"
            "print(json.dumps(found))"
        )

    found = limited(look)
    assert found.keys() == {"/", "/filesystem", "/dev/shm"}
    assert found["/"] == found["/filesystem"] == LIMITS.storage_mib
    assert found["/dev/shm"] <= 64


def test_more_files_than_the_box_may_write(limited: Limited) -> None:
    async def fill(room: Room) -> Any:
        done = await room.run("cd /filesystem; for ((i = 0; ; i++)); do > $i || exit; done")
        count = int(await room.say("ls /filesystem | wc -l"))
        return done, count, await _is_well(room)

    done, count, well = limited(fill)
    assert b"No space left on device" in done.stderr
    assert done.disk_full
    assert count < 256 * LIMITS.storage_mib
    assert well


@CGROUPS  # rlimits know no share of a core
def test_no_more_cpu_than_its_share(limited: Limited) -> None:
    async def spin(room: Room) -> tuple[float, float]:
        before = await _usage(room)
        done = await room.run("(while :; do :; done) & while :; do :; done", timeout_s=1.5)
        return (await _usage(room)).cpu_s - before.cpu_s, done.seconds

    used_s, wall_s = limited(spin)
    assert used_s <= LIMITS.cpus * wall_s + 0.15  # a period and a half of 100 ms


@pytest.mark.parametrize(
    "endless",
    [
        "sleep infinity",
        "while :; do :; done",
        "trap '' TERM INT HUP QUIT; while :; do :; done",
        "sleep infinity | cat | cat",
        "cat",
        "yes",
    ],
)
def test_a_command_without_an_end_is_killed_with_its_session(
    limited: Limited, endless: str
) -> None:
    async def run(room: Room) -> Any:
        done = await room.run(endless, timeout_s=0.3)
        return done, await _is_empty(room), await _is_well(room)

    done, empty, well = limited(run)
    if endless == "cat":  # its standard input is empty: it has an end
        assert (done.timed_out, done.status) == (False, 0)
    else:
        assert (done.timed_out, done.status) == (True, SIGKILL)
        assert 0.3 <= done.seconds < 5
    assert empty
    assert well


def test_output_without_an_end_is_kept_to_a_bound(limited: Limited) -> None:
    async def run(room: Room) -> Any:
        return await room.run("echo first; yes", timeout_s=0.3)

    done = limited(run)
    assert done.stdout.startswith(b"first\n")
    assert len(done.stdout) <= (1 << 20) + 100


def test_no_more_open_files_and_no_core(limited: Limited) -> None:
    async def ask(room: Room) -> str:
        return await room.say("ulimit -n; ulimit -c")

    assert limited(ask).split() == [str(LIMITS.open_files), "0"]


def test_a_limit_cannot_be_raised_from_inside(limited: Limited) -> None:
    async def raise_(room: Room) -> Any:
        done = await room.run(
            "ulimit -n 100000; ulimit -v unlimited; ulimit -u 100000; ls /sys/fs/cgroup"
        )
        return done.stdout

    assert limited(raise_) == b""


def test_a_box_at_its_limits_can_still_be_emptied_and_carried_from(
    limited: Limited, tmp_path: Path
) -> None:
    """The carrier stands outside the limits of what it carries from."""
    from envkit.sandbox import carrier

    async def bomb(room: Room) -> bool:
        await room.say("echo kept > /filesystem/kept.txt")
        await room.run("for i in $(seq 40); do sleep infinity & done; wait", timeout_s=0.3)
        await room.run("setsid bash -c ':(){ :|:& };:; while :; do :; done' &", timeout_s=5)
        await room.run("exec cat /dev/zero > /tmp/fill")

        async def transfer(what: str, path: str, fds: list[int]) -> int:
            answer = await room.session.channel.ask(
                "transfer", fds, box=room.name, what=what, path=path
            )
            return int(answer["status"])

        await carrier.fetch_dir(transfer, "/filesystem", tmp_path / "out")
        await room.ask("sweep")
        return await _is_empty(room)

    assert limited(bomb)
    assert (tmp_path / "out/kept.txt").read_text() == "kept\n"
