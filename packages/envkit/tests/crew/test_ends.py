# SPDX-License-Identifier: Apache-2.0
"""How crews end: refused, let go, killed at any time; and what the next one finds."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envkit.crew.client import open_crew
from envkit.crew.types import CrewEvent, CrewRefused, Ended, Gauges, Ready, Refused
from envkit.deadline import deadline
from envkit.sandbox.reaper import processes, remnants
from envkit.trajectory.store import Store

from ..run.small import model_that_says
from ..trial.tiny import make_task
from .small import FOREVER, PATIENCE_S, Heard, Yard, gone, heard, lost, play, ran

pytestmark = pytest.mark.integration

OWNER = """\
import asyncio, json, sys
from pathlib import Path
from envkit.crew.client import open_crew
from envkit.crew.types import CrewOptions, Phase, TrialOrder

async def main():
    told = json.loads(sys.argv[1])
    options = CrewOptions(
        python=Path(sys.executable), root=Path(told["root"]), tasks=(Path(told["tasks"]),),
        agent={"tokenizer": told["model"]},
    )
    async with open_crew(options) as crew:
        order = TrialOrder(
            trial_id="a", group_id="g", sample=0, task="ordinary", engine=told["engine"]
        )
        await crew.begin(order)
        async for event in crew.events():
            if isinstance(event, Phase) and event.phase == "act":
                print(crew.ready.run_token, crew.ready.pid, flush=True)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def needs_boxes(boxes: None) -> None: ...


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Its model begins what does not end."""
    make_task(tmp_path / "tasks")
    with model_that_says(tmp_path, [FOREVER]) as (model, serving):
        yield Yard(home=tmp_path, model=model, engine=serving.url)


def begun_by_another(yard: Yard) -> tuple[subprocess.Popen[str], str, int]:
    """The owner of a crew whose trial acts, its token and the crew's process."""
    told = {"root": yard.root, "tasks": yard.home / "tasks", "model": yard.model}
    words = json.dumps({**{name: str(path) for name, path in told.items()}, "engine": yard.engine})
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(yard.home)},
    )
    assert owner.stdout is not None
    token, pid = owner.stdout.readline().split()
    return owner, token, int(pid)


def sockets(yard: Yard) -> list[Path]:
    """Directories that a crew of another's connects in."""
    return list(yard.home.glob("envkit-crew-*"))


def next_one(yard: Yard) -> Ready:
    """What the next crew in the same root says as it opens."""

    async def work() -> Ready:
        async with open_crew(yard.options()) as crew:
            return crew.ready

    return play(work())


def test_a_crew_whose_owner_is_killed_ends_everything_and_itself(yard: Yard) -> None:
    owner, token, pid = begun_by_another(yard)
    assert remnants(token)
    assert sockets(yard) == []  # nobody would remove it
    with owner:
        owner.kill()
    gone(pid)
    assert remnants(token) == []
    assert next_one(yard).cut_off == ("a",)
    assert list((yard.root / "trials").iterdir()) == []


def test_what_a_crew_started_is_gone_once_it_is_left(yard: Yard) -> None:
    async def work() -> str:
        async with heard(yard.options()) as crew:
            await crew.crew.begin(yard.order("a"))
            await crew.acts("a")
            return crew.crew.ready.run_token

    assert remnants(play(work())) == []
    assert Store(yard.root / "trajectories").ids == ()


def test_whoever_listens_as_a_crew_is_left_hears_no_more_and_no_error(yard: Yard) -> None:
    async def work() -> list[CrewEvent]:
        async def listen(crew: Heard) -> list[CrewEvent]:
            return [event async for event in crew.crew.events()]

        async with heard(yard.options()) as crew:
            listening = asyncio.create_task(listen(crew))
            await asyncio.sleep(0)
        async with deadline("test", PATIENCE_S):
            return await listening

    assert all(isinstance(each, Gauges) for each in play(work()))


@pytest.mark.parametrize("victims", ["crew", "crew and fork server", "all but the boxes"])
def test_a_crew_that_is_killed_leaves_nothing_once_the_next_one_is_open(
    yard: Yard, victims: str
) -> None:
    async def work(crew: Heard) -> None:
        await crew.crew.begin(yard.order("a"))
        await crew.acts("a")
        kill(crew.crew.ready, victims)

    why, ready = play(lost(yard.options(), work))
    assert "ended with signal 9" in why
    after = next_one(yard)
    assert remnants(ready.run_token) == []
    assert after.run_token != ready.run_token
    assert (after.cut_off, after.rows) == (("a",), 0)
    assert list((yard.root / "trials").iterdir()) == []
    assert not (yard.root / ".tmp").exists()


def kill(ready: Ready, victims: str) -> None:
    held = processes(ready.run_token) if victims == "all but the boxes" else []
    if victims == "crew and fork server":
        held = [pid for pid in processes(ready.run_token) if parent(pid) == ready.pid]
        assert len(held) == 1
    for pid in (ready.pid, *held):
        if pid == ready.pid or b"bwrap" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


def parent(pid: int) -> int:
    text = Path(f"/proc/{pid}/stat").read_text()
    return int(text.rpartition(")")[2].split()[1])


def test_rows_that_were_said_are_there_after_a_kill_and_their_ids_stay_taken(
    tmp_path: Path,
) -> None:
    make_task(tmp_path / "tasks")
    with model_that_says(tmp_path) as (model, serving):
        yard = Yard(home=tmp_path, model=model, engine=serving.url)

        async def work(crew: Heard) -> None:
            await crew.crew.begin(yard.order("a"))
            await crew.ends(1)
            os.kill(crew.crew.ready.pid, signal.SIGKILL)

        play(lost(yard.options(), work))
        torn = yard.root / "trajectories/.segment-00000002.arrow.part"
        torn.write_bytes(b"half of a segment")
        ends = play(ran(yard.options(), [yard.order("a"), yard.order("b")]))
    assert isinstance(ends["a"], Refused)
    assert isinstance(ends["b"], Ended)
    assert [row.identity.trajectory_id for row in Store(yard.root / "trajectories")] == ["a", "b"]
    assert not torn.exists()


def test_a_crew_without_its_fork_server_says_so_and_ends(yard: Yard) -> None:
    async def work(crew: Heard) -> None:
        await crew.crew.begin(yard.order("a"))
        await crew.acts("a")
        token, pid = crew.crew.ready.run_token, crew.crew.ready.pid
        (server,) = [each for each in processes(token) if parent(each) == pid]
        os.kill(server, signal.SIGKILL)

    why, ready = play(lost(yard.options(), work))
    assert f"its fork server is gone; what it said: {yard.root}/sandbox.log" in why
    assert remnants(ready.run_token) == []


def test_a_store_that_cannot_be_written_ends_the_crew_with_what_to_do(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    with model_that_says(tmp_path) as (model, serving):
        yard = Yard(home=tmp_path, model=model, engine=serving.url)

        async def work(crew: Heard) -> None:
            shutil.rmtree(yard.root / "trajectories")
            await crew.crew.begin(yard.order("a"))

        why, _ = play(lost(yard.options(), work))
    assert "make room there" in why


def test_a_crew_that_is_frozen_is_lost_after_its_silence(yard: Yard) -> None:
    async def work(crew: Heard) -> None:
        os.kill(crew.crew.ready.pid, signal.SIGSTOP)

    why, ready = play(lost(yard.options(silence_s=0.1, close_s=0.1), work))
    assert "silence did not finish within 0.1 s" in why
    gone(ready.pid)


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "no interpreter": ({"python": Path("/nowhere/python")}, "/nowhere/python: No such file"),
    "no envkit there": ({"python": Path("/bin/false")}, "/bin/false: ended with status 1"),
    "no tasks": ({"tasks": (Path("/nowhere"),)}, "no such directory; name a task or a directory"),
    "no tokenizer": ({"agent": {}}, "agent: names no tokenizer"),
    "strange setting": ({"agent": {"voice": "low"}}, "there is no 'voice'"),
    "engine by URL": ({"agent": {"engine": "http://x"}}, "its URL comes with each order"),
    "strange token": ({"run_token": "me"}, "run_token 'me': write sixteen hex digits"),
    "strange place": ({"env": "moon"}, "env moon: use local, unsafe-process or module:Class"),
    "file for a root": ({"root": Path("/dev/null")}, "/dev/null"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_opened_is_one_line(yard: Yard, name: str) -> None:
    changes, told = REFUSALS[name]
    options = yard.options()
    agent = changes.get("agent")
    if agent is not None and "tokenizer" not in told:
        changes = {**changes, "agent": {**options.agent, **agent}}

    async def work() -> None:
        async with open_crew(replace(options, **changes)):
            raise AssertionError("it opened")

    with pytest.raises(CrewRefused) as refused:
        play(work())
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_two_crews_do_not_work_in_one_root(yard: Yard) -> None:
    async def work() -> str:
        async with open_crew(yard.options()) as first:
            with pytest.raises(CrewRefused) as refused:
                async with open_crew(yard.options()):
                    raise AssertionError("it opened")
            assert remnants(first.ready.run_token)
            assert f"the crew of process {first.ready.pid} works in it" in str(refused.value)
            return first.ready.run_token

    assert remnants(play(work())) == []


def test_a_broken_task_is_refused_before_anything_runs(yard: Yard) -> None:
    (yard.home / "tasks/ordinary/tests/test.sh").unlink()

    async def work() -> None:
        async with open_crew(yard.options()):
            raise AssertionError("it opened")

    with pytest.raises(CrewRefused, match=r"ordinary: .*tests/test.sh"):
        play(work())


def test_the_clients_side_needs_neither_harbor_nor_mcp() -> None:
    code = "import sys, envkit.crew.client; print({'harbor', 'mcp', 'pyarrow'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout.strip() == "set()"
