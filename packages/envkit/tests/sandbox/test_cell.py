# SPDX-License-Identifier: Apache-2.0
"""What lives in a cell sees its scene and its own folders, writes to those only, and ends."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envkit.sandbox import enter
from envkit.sandbox.cell import READY
from envkit.sandbox.cgroup import find_parent, leftovers
from envkit.sandbox.channel import RequestFailed
from envkit.sandbox.session import own_session
from envkit.sandbox.spec import BoxSpec

pytestmark = pytest.mark.integration

PROBE = Path(__file__).parent / "cell_probe.py"
PROBE_S = 60.0


@pytest.fixture
def stage() -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="envkit-test-") as folder:
        Path(folder).chmod(0o755)
        yield folder


def command(stage: str, root: Path, what: str) -> list[str]:
    return [sys.executable, str(PROBE), stage, str(root), what]


def probe(stage: str, root: Path, what: str) -> Any:
    done = subprocess.run(
        command(stage, root, what), capture_output=True, text=True, timeout=PROBE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_cell_is_confined_as_any_box(stage: str, root: Path) -> None:
    seen = probe(stage, root, "look")
    assert (seen["status"], seen["told"]) == (0, READY.decode())
    found = seen["found"]
    assert set(found["capabilities"]) == {"0" * 16}
    assert found["new privileges"] == "1"
    assert (found["users"][0], found["users"][2]) == ("0", "1")
    assert found["environment"] == {}
    assert found["interfaces"] == ["lo"]
    assert found["host name"] == "gateway"
    assert found["open files"] == 100
    assert found["processes"] == [found["own id"]] == [1]
    assert len(found["descriptors"]) == 1, "only what it was to keep"
    assert [found[name] for name in ("new user namespace", "new mount namespace")] == [
        "ENOSPC",
        "EPERM",
    ]
    assert {found[name] for name in ("a mount", "writable again", "another name")} == {"EPERM"}


def test_a_cell_sees_its_root_and_writes_to_what_is_its_own(stage: str, root: Path) -> None:
    found = probe(stage, root, "look")["found"]
    own = {".apps_data", "dev", "filesystem", "proc", "tmp"}
    assert set(found["top"]) == {*os.listdir(root), *own}
    assert found["may"] == [1, 1, 1]
    assert set(found["cannot"].values()) <= {"EROFS", "ENOENT", "EACCES"}


def test_a_cell_that_cannot_be_made_says_why(stage: str, root: Path) -> None:
    refused, wrong = probe(stage, root, "fail")
    assert refused == [enter.CANNOT_ENTER, "[Errno 2] open_tree: No such file or directory"]
    assert wrong == [enter.CANNOT_ENTER, "gid is less than minimum"]


def test_a_scene_that_cannot_be_mounted_says_why_and_can_be_when_it_can(
    stage: str, root: Path
) -> None:
    first, again, then = probe(stage, root, "hide")
    assert "cannot be mounted: " in first
    assert (again, then) == (first, "mounted")


def test_a_fork_into_namespaces_is_a_fork(stage: str, root: Path) -> None:
    (own_id, threads, main, reseeded), status = probe(stage, root, "fork")
    assert (own_id, status) == (1, 3)
    assert threads == [2]
    assert main == [True, 1]
    assert reseeded


def test_a_cell_ends_with_what_forked_it_and_takes_its_children_along(
    stage: str, root: Path
) -> None:
    with subprocess.Popen(command(stage, root, "stay"), stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        ended = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        ready, _, _ = select.select([ended], [], [], PROBE_S)
        os.close(ended)
    assert ready, "process 1 ends when all in its namespace have"


def test_a_gateway_that_cannot_start_leaves_no_group_and_its_box_as_it_was(root: Path) -> None:
    async def fail() -> list[str]:
        null = os.open(os.devnull, os.O_RDWR)
        async with own_session(warm=False) as session:
            spec = BoxSpec(name="room", root=root, parsed=Path("/is-not-there"))
            await session.channel.ask("open", box="room", spec=spec.to_dict())
            with pytest.raises(RequestFailed, match="No such file"):
                await session.channel.ask("gateway", [null] * 4, box="room", start_s=30)
            os.close(null)
            parts = await session.channel.ask("parts", box="room")
            assert "gateway" not in parts
            assert parts["box"]["pid"] > 0
            run, parent = session.stage.name.removeprefix("envkit-run-"), find_parent()
            return [name for name in leftovers(parent) if run in name] if parent else []

    assert [name for name in asyncio.run(fail()) if name.endswith("gateway")] == []
