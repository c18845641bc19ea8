# SPDX-License-Identifier: Apache-2.0
"""What a warmed interpreter leaves in the hands of agent code, and what its door withstands."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from envkit.sandbox.reaper import processes, remnants
from envkit.sandbox.session import own_session
from envkit.sandbox.spec import BoxSpec
from envkit.sandbox.warm.door import BURST, PER_S

from ..conftest import Room
from .conftest import ENV, LIMITS, Both, argv, shell

pytestmark = pytest.mark.integration

COLD = "/usr/local/bin/python3.12 - <<'PROGRAM'\n"


async def _warm_python(room: Room, source: str) -> str:
    """What a program prints that ran warm."""
    before = (await room.ask("usage"))["warmed"]
    done = await argv(room, ["python3", "-c", source])
    assert done.stderr == b""
    assert (await room.ask("usage"))["warmed"] == before + 1
    return done.stdout.decode()


def test_its_interpreter_cannot_be_written_through_any_link(both: Both) -> None:
    source = """
import errno, os
mapped = "/proc/self/map_files"
for path in ("/proc/self/exe", f"{mapped}/{os.listdir(mapped)[0]}"):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        try:
            os.open(path, flags)
            print("opened")
        except OSError as error:
            print(errno.errorcode[error.errno])
"""
    said = both.run(_warm_python(both.warm, source))
    assert len(said.split()) == 6
    assert set(said.split()) <= {"EROFS", "ETXTBSY", "EPERM", "EACCES"}


def test_the_root_on_the_host_is_unchanged_by_what_it_writes(both: Both, office_root: Path) -> None:
    source = "import os; p = '/usr/local/bin/python3.12'; os.unlink(p); open(p, 'wb').write(b'x')"

    async def write() -> int:
        async with own_session(warm=False, roots=(office_root,)) as session:
            room = Room(session)
            spec = BoxSpec(name=room.name, root=office_root, limits=LIMITS)
            await room.ask("open", spec=spec.to_dict())
            return (await argv(room, ["python3", "-c", source])).status

    before = (office_root / "usr/local/bin/python3.12").read_bytes()
    assert both.run(write()) == 0
    assert (office_root / "usr/local/bin/python3.12").read_bytes() == before


def test_it_sees_the_mounts_and_namespaces_of_its_box_and_no_others(both: Both) -> None:
    source = """
import os
print(sorted(line.split()[4] for line in open("/proc/self/mountinfo")))
print([os.readlink("/proc/self/ns/" + name) for name in sorted(os.listdir("/proc/self/ns"))])
print(os.readlink("/proc/self/root"), os.readlink("/proc/self/cwd"), sorted(os.listdir("/")))
print(open("/proc/self/uid_map").read().split(), os.getuid(), os.getgroups())
"""

    async def look() -> list[str]:
        warm = await _warm_python(both.warm, source)
        cold = await shell(both.warm, f"cd /tmp; {COLD}{source}\nPROGRAM")
        return [warm, cold.stdout.decode()]

    warm, cold = both.run(look())
    assert warm == cold


def test_it_is_in_the_control_groups_and_limits_of_its_box(both: Both) -> None:
    source = "print(open('/proc/self/cgroup').read(), open('/proc/self/limits').read())"

    async def look() -> list[str]:
        cold = await shell(both.warm, f"{COLD}{source}\nPROGRAM")
        return [await _warm_python(both.warm, source), cold.stdout.decode()]

    warm, cold = both.run(look())
    assert warm == cold


def test_it_holds_nothing_of_what_another_box_asked(both: Both) -> None:
    """Every child is a copy of the parent; what is asked must never lie in the parent."""
    mark = "".join(["mark-of", "-another-", "box"])
    search = """
import re
mark = "".join(["mark-of", "-another-", "box"]).encode()
own = found = 0
with open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in open("/proc/self/maps"):
        start, end = (int(n, 16) for n in line.split()[0].split("-"))
        if " r" not in line or "[v" in line:
            continue
        try:
            memory.seek(start)
            data = memory.read(end - start)
        except OSError:
            continue
        own += data.count(b"own += data.count")
        found += len(re.findall(re.escape(mark) + b"[0-9]", data))
        del data
print(own > 0, found)
"""

    async def ask() -> str:
        session = both.warm.session
        other = Room(session, session.box_name("other"))
        spec = BoxSpec(name=other.name, root=both.root, limits=LIMITS)
        await other.ask("open", spec=spec.to_dict())
        try:
            for number in range(5):
                env = {**ENV, "KEY": f"{mark}{number}"}
                await argv(other, ["python3", "-c", f"x = '{mark}{number}'"], env)
                await shell(other, f"python3 -c \"x = '{mark}{number}'\" {mark}{number}", env)
        finally:
            await other.ask("close")
        return await _warm_python(both.warm, search)

    assert both.run(ask()).split() == ["True", "0"]


def test_no_name_of_its_parents_own_code_is_left(both: Both) -> None:
    source = """
import gc, sys
print([n for n in sys.modules if "envkit" in n or "zygote" in n])
print([p for p in [*sys.path, *sys.path_importer_cache] if "/run" in p])
print(any("envkit" in str(v) for v in vars(sys.modules["__main__"]).values()))
"""
    assert both.run(_warm_python(both.warm, source)).splitlines() == ["[]", "[]", "False"]


def test_forks_of_one_parent_share_no_random_numbers(both: Both) -> None:
    source = (
        "import random, uuid, tempfile, secrets, numpy; print(random.random(),"
        " numpy.random.random(), uuid.uuid4(), tempfile.mktemp(), secrets.token_hex(),"
        " numpy.random.default_rng().random())"
    )

    async def draw() -> list[list[str]]:
        return [(await _warm_python(both.warm, source)).split() for _ in range(3)]

    drawn = both.run(draw())
    assert all(len(set(column)) == 3 for column in zip(*drawn, strict=True))


GARBAGE = """
import array, os, random, socket, struct
rng = random.Random({seed})
def frame(body): return struct.pack(">I", len(body)) + body
good = b"/tmp\\0\\0\\0\\0" + b"3\\0python3\\0-c\\0print(1)\\0"
kinds = [
    lambda s: s.send(rng.randbytes(rng.randrange(1, 5000))),
    lambda s: s.send(b"\\xff\\xff\\xff\\xff" + b"x" * 100),
    lambda s: s.send(frame(rng.randbytes(50))),
    lambda s: s.send(frame(good)),
    lambda s: socket.send_fds(s, [frame(good)], [0]),
    lambda s: socket.send_fds(s, [frame(good)], [0] * 50),
    lambda s: socket.send_fds(s, [frame(good[:-9])], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(b"\\0" * 1000)], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(b"/\\0\\0\\0\\0" + b"99999999\\0x\\0")], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(b"/\\0\\0x y\\0\\0" + b"1\\0x\\0")], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(b"/\\0" + b"9" * 9 + b"\\0\\0\\0001\\0x\\0")], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(b"/\\0\\0999\\0\\0" + b"1\\0x\\0")], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(b"/\\0\\0\\0" + b"77:1:1\\0" + b"1\\0x\\0")], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(good) + b"G"], [0, 1, 2]),
    lambda s: socket.send_fds(s, [frame(good)], [0, 1, s.fileno()]),
    lambda s: s.shutdown(socket.SHUT_WR),
    lambda s: None,
]
for kind in [*kinds, *rng.choices(kinds, k=20)]:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/run/envkit/python")
        try: kind(s)
        except OSError: pass
print("done")
"""


def test_garbage_at_the_door_hurts_nobody(both: Both) -> None:
    async def send() -> Any:
        done = await shell(both.warm, f"{COLD}{GARBAGE.format(seed=7)}\nPROGRAM")
        assert done.stdout.splitlines()[-1:] == [b"done"], done.stderr
        await _until_empty(both.warm)
        await asyncio.sleep(0)
        return await _warm_python(both.warm, "print('well')"), both.warm.events

    assert both.run(send()) == ("well\n", [])


def test_a_flood_at_the_door_costs_the_host_a_bounded_number_of_forks(both: Both) -> None:
    flood = """
import socket, time
opened, until = 0, time.monotonic() + 2
while time.monotonic() < until:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/run/envkit/python")
        opened += 1
print(opened)
"""

    async def run() -> tuple[int, float, float]:
        before, began = await _zygote_forks(both), time.monotonic()
        done = await shell(both.warm, f"{COLD}{flood}\nPROGRAM")
        seconds = time.monotonic() - began
        await _until_empty(both.warm)
        return int(done.stdout), await _zygote_forks(both) - before, seconds

    opened, admitted, seconds = both.run(run())
    assert opened > admitted
    assert admitted <= BURST + PER_S * seconds
    both.run(both.until_admitted())
    assert both.run(_warm_python(both.warm, "print('well')")) == "well\n"


async def _zygote_forks(both: Both) -> int:
    return int((await both.warm.ask("usage"))["admitted"])


async def _until_empty(room: Room) -> None:
    """Until nothing is left in the box but process 1 and this command."""
    count = "(set -- /proc/[0-9]*; echo $#)"
    done = await shell(room, f"while [ $({count}) -gt 4 ]; do :; done", timeout_s=20)
    assert not done.timed_out


LONG = "open('/tmp/up', 'w').close(); import time; time.sleep(1000)"
UP = "while ! [ -e /tmp/up ]; do :; done; rm /tmp/up"


@pytest.mark.parametrize("number", ["KILL", "TERM", "HUP"])
def test_with_its_shim_the_interpreter_ends(both: Both, number: str) -> None:
    async def run() -> Any:
        script = f'python3 -c "{LONG}" & p=$!; {UP}; kill -{number} $p; wait $p; echo $?'
        done = await shell(both.warm, script)
        await _until_empty(both.warm)
        return int(done.stdout)

    assert both.run(run()) == 128 + getattr(signal, f"SIG{number}")


@pytest.mark.parametrize("script", [f'python3 -c "{LONG}"', f'true; python3 -c "{LONG}" | cat'])
def test_with_its_command_the_interpreter_ends(both: Both, script: str) -> None:
    async def run() -> Any:
        done = await shell(both.warm, script, timeout_s=1.5)
        await _until_empty(both.warm)
        return done.timed_out, done.status

    assert both.run(run()) == (True, 128 + 9)


def test_a_direct_command_without_an_end_is_killed_with_its_children(both: Both) -> None:
    async def run() -> Any:
        source = f"import subprocess; subprocess.Popen(['sleep', '1000']); {LONG}"
        done = await argv(both.warm, ["python3", "-c", source], timeout_s=1.5)
        await shell(both.warm, UP)
        await _until_empty(both.warm)
        return done.timed_out, done.status

    assert both.run(run()) == (True, 128 + 9)


def test_a_sweep_ends_what_runs_warm(both: Both) -> None:
    async def run() -> int:
        running = asyncio.ensure_future(argv(both.warm, ["python3", "-c", LONG]))
        await shell(both.warm, UP)
        await both.warm.ask("sweep")
        return (await running).status

    assert both.run(run()) == 128 + 9


def _zygote(session: Any) -> int:
    run = session.stage.name.removeprefix("envkit-run-")
    found = [
        pid for pid in processes(run) if b"warm.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    (parent,) = [pid for pid in found if _parent(pid) not in found]  # the others are its waiters
    return parent


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_when_the_parent_is_killed_boxes_run_cold_and_nothing_else_happens(
    office_root: Path,
) -> None:
    async def run() -> None:
        async with own_session(warm=False, roots=(office_root,)) as session:
            room = Room(session)
            session.handlers[room.name] = lambda event, _: room.events.append(event)
            spec = BoxSpec(name=room.name, root=office_root, limits=LIMITS)
            await room.ask("open", spec=spec.to_dict())
            going_on = "open('/tmp/up', 'w').close(); print(input())"
            piped = f'(while ! [ -e /tmp/go ]; do :; done; echo ended) | python3 -c "{going_on}"'
            running = asyncio.ensure_future(shell(room, piped))
            await shell(room, UP)
            os.kill(_zygote(session), signal.SIGKILL)
            while not await _cold(room):
                pass
            assert (await shell(room, "python3 -c 'print(1)'")).stdout == b"1\n"
            await shell(room, "touch /tmp/go")
            assert (await running).stdout == b"ended\n"
            assert room.events == []
            token = session.stage.name.removeprefix("envkit-run-")
        assert [r for r in remnants(token) if r.kind == "process"] == []

    asyncio.run(run())


async def _cold(room: Room) -> bool:
    """Whether a command has just run cold."""
    before = (await room.ask("usage"))["warmed"]
    assert (await argv(room, ["python3", "-c", "print(1)"])).stdout == b"1\n"
    return (await room.ask("usage"))["warmed"] == before


def test_a_box_whose_packages_were_changed_runs_cold(office_root: Path) -> None:
    async def run() -> None:
        async with own_session(warm=False, roots=(office_root,)) as session:
            room = Room(session)
            spec = BoxSpec(name=room.name, root=office_root, limits=LIMITS)
            await room.ask("open", spec=spec.to_dict())
            assert not await _cold(room)
            site = "/usr/local/lib/python3.12/site-packages"
            await shell(room, f"echo 'print(\"changed\")' > {site}/openpyxl/__init__.py")
            await shell(room, f"rm -r {site}/openpyxl/__pycache__")
            assert await _cold(room)
            done = await shell(room, "python3 -c 'import openpyxl'")
            assert done.stdout == b"changed\n"

    asyncio.run(run())
