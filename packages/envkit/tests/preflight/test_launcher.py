# SPDX-License-Identifier: Apache-2.0
"""The launcher over real trials: its barrier, its retries, and what it survives and leaves."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envkit.deadline import deadline
from envkit.preflight.launcher import ForkServerLauncher
from envkit.preflight.slots import slot_s
from envkit.preflight.types import (
    Event,
    RunGauges,
    TrialEnded,
    TrialPhase,
    TrialSpec,
    TrialStarted,
)
from envkit.sandbox.availability import availability
from envkit.sandbox.reaper import processes, reap, remnants

from ..trial.tiny import Ran, collect, launcher, lend_parts, make_task, run_trials, spec

pytestmark = pytest.mark.integration

FAULTY_BOX = "faulty_box:FaultyEnvironment"
ENDLESS = "faulty_agent:EndlessAgent"
PATIENCE_S = 60.0


@pytest.fixture(scope="module", autouse=True)
def boxes() -> None:
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")


@pytest.fixture(autouse=True)
def faulty_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials can import what goes wrong."""
    lend_parts(monkeypatch)


def _where(ran: Ran, wanted: Callable[[Event], bool]) -> int:
    """Place of the first event of that kind."""
    return next(place for place, event in enumerate(ran.events) if wanted(event))


async def _until_acting(launches: ForkServerLauncher, specs: list[TrialSpec]) -> Any:
    """The run, when the agents of all its trials act."""
    running = launches.run(specs)
    acting: set[str] = set()
    async with deadline("test", PATIENCE_S):
        async for event in running:
            if isinstance(event, TrialPhase) and event.phase == "act":
                acting.add(event.trial_id)
            if len(acting) == len(specs):
                return running
    raise AssertionError("the run ended")


def test_a_barrier_holds_the_first_wave_until_all_of_it_lives(tmp_path: Path) -> None:
    task = make_task(tmp_path / "tasks")
    specs = [spec(task, tmp_path / "out", f"t{number}") for number in range(6)]
    ran = run_trials(launcher(tmp_path / "out", concurrency=4, barrier=True), specs)
    first_act = _where(ran, lambda e: isinstance(e, TrialPhase) and e.phase == "act")
    before = ran.events[:first_act]
    held = {e.trial_id for e in before if isinstance(e, TrialPhase) and e.phase == "hold"}
    assert len(held) == 4
    assert max(e.live_boxes for e in ran.events if isinstance(e, RunGauges)) == 4
    assert {record.reward for record in ran.records.values()} == {1.0}
    assert len(ran.records) == 6


def test_no_broken_part_of_one_trial_ends_the_run_of_the_others(tmp_path: Path) -> None:
    tasks, out = tmp_path / "tasks", tmp_path / "out"
    good = make_task(tasks)
    torn = make_task(tasks, "torn")
    (torn / "task.toml").write_text("[agent\n")
    worldless = make_task(tasks, "worldless")
    toml = (worldless / "task.toml").read_text()
    (worldless / "task.toml").write_text(toml.replace('world = "tiny"', 'world = "nowhere"'))
    specs = [
        spec(torn, out, "torn.x.agent"),
        spec(worldless, out, "worldless.x.agent"),
        spec(tasks / "missing", out, "missing.x.agent"),
        spec(good, out, "no-module.x.agent", agent="no_such_module:Agent"),
        spec(good, out, "no-class.x.agent", agent="faulty_agent:NoSuchAgent"),
        spec(good, out, "no-agent.x.agent", agent="no-such-agent"),
        spec(good, out, "unbuildable.x.agent", agent="faulty_agent:UnbuildableAgent"),
        spec(good, out, "construct.always_raise.agent"),
        spec(good, out, "good.x.agent"),
    ]
    ran = run_trials(launcher(out, env=FAULTY_BOX, concurrency=5), specs)
    good_one = ran.records.pop("good.x.agent")
    assert (good_one.reward, good_one.reward_valid) == (1.0, True)
    assert set(ran.records) == {s.trial_id for s in specs[:-1]}
    for record in ran.records.values():
        assert (record.reward, record.reward_valid) == (None, False)
        assert record.fault is not None, record.trial_id
    assert ran.leftovers == []


def test_an_environment_that_cannot_be_loaded_fails_each_trial_and_not_the_run(
    tmp_path: Path,
) -> None:
    task = make_task(tmp_path / "tasks")
    specs = [spec(task, tmp_path / "out", f"t{number}") for number in range(2)]
    ran = run_trials(launcher(tmp_path / "out", env="no_such_module:Box"), specs)
    assert [record.reward_valid for record in ran.records.values()] == [False, False]


def test_a_fault_that_stays_is_tried_twice_and_no_more(tmp_path: Path) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    ids = ["start.always_raise.agent", "trial.always_die.agent"]
    ran = run_trials(launcher(out, env=FAULTY_BOX), [spec(task, out, name) for name in ids])
    for name, code in zip(ids, ("SandboxStartFailed", "TrialDied"), strict=True):
        record = ran[name]
        assert [attempt.faults[0].code for attempt in record.attempts] == [code, code]
        assert (record.reward, record.reward_valid, record.verdict) == (None, False, "no_verdict")
        assert record.trial_dir == out / f"{name}.attempt2"
        assert (out / name).is_dir()
    assert ran.leftovers == []


def test_a_slot_is_free_while_an_attempt_waits_to_be_run_again(tmp_path: Path) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    again, other = "trial.die.agent", "other.x.agent"
    launches = launcher(out, env=FAULTY_BOX, concurrency=1)
    ran = run_trials(launches, [spec(task, out, again), spec(task, out, other)])
    started = _where(ran, lambda e: isinstance(e, TrialStarted) and e.trial_id == other)
    ended = _where(ran, lambda e: isinstance(e, TrialEnded) and e.record.trial_id == again)
    assert started < ended
    assert [len(ran[name].attempts) for name in (again, other)] == [2, 1]
    assert {record.reward for record in ran.records.values()} == {1.0}


def test_a_closed_run_leaves_nothing_and_disturbs_no_other(tmp_path: Path) -> None:
    task = make_task(tmp_path / "tasks")
    ours = launcher(tmp_path / "ours", concurrency=3)
    theirs = launcher(tmp_path / "theirs", concurrency=2)
    endless = [spec(task, tmp_path / "ours", f"t{number}", ENDLESS) for number in range(3)]
    ordinary = [spec(task, tmp_path / "theirs", f"t{number}") for number in range(4)]

    async def both() -> Ran:
        others = asyncio.create_task(collect(theirs, ordinary))
        running = await _until_acting(ours, endless)
        async with deadline("test", PATIENCE_S):
            await running.aclose()  # as Ctrl-C does
        assert ours.leftovers() == []
        return await others

    ran = asyncio.run(both())
    assert [record.reward for record in ran.records.values()] == [1.0] * 4
    assert ran.leftovers == []


@pytest.mark.parametrize("victim", ["fork server", "nursery"])
def test_a_killed_server_ends_every_trial_with_a_fault_and_not_the_run(
    tmp_path: Path, victim: str
) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    launches = launcher(out, concurrency=2)
    specs = [spec(task, out, f"t{number}", ENDLESS) for number in range(12)]

    async def whole() -> list[TrialEnded]:
        acting, ended = 0, list[TrialEnded]()
        async with deadline("test", PATIENCE_S):
            async for event in launches.run(specs):
                if isinstance(event, TrialPhase) and event.phase == "act":
                    acting += 1
                    if acting == 2:
                        os.kill(_server(launches, nursery=victim == "nursery"), signal.SIGKILL)
                elif isinstance(event, TrialEnded):
                    ended.append(event)
        assert acting == 2
        return ended

    ended = asyncio.run(whole())
    assert {event.record.trial_id for event in ended} == {each.trial_id for each in specs}
    for event in ended:
        assert event.record.reward_valid is False
        assert event.record.fault is not None
    assert launches.leftovers() == []


_CONTROLLER = """\
import asyncio, sys
from pathlib import Path
from envkit.preflight.launcher import ForkServerLauncher
from envkit.preflight.types import RunOptions, TrialPhase, TrialSpec

task, out, token = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
out.mkdir()
options = RunOptions(concurrency=2, out_dir=out, run_token=token, barrier=False)
specs = [
    TrialSpec(trial_id=f"t{n}", task_dir=task, sample=n, agent="faulty_agent:EndlessAgent",
              out_dir=out, env="local")
    for n in range(2)
]

async def main():
    async for event in ForkServerLauncher("local", options).run(specs):
        if isinstance(event, TrialPhase) and event.phase == "act":
            print("acting", flush=True)

asyncio.run(main())
"""


def test_a_killed_controller_leaves_nothing_that_is_not_reaped(tmp_path: Path) -> None:
    task, token = make_task(tmp_path / "tasks"), os.urandom(8).hex()
    arguments = [str(task), str(tmp_path / "out"), token]
    with subprocess.Popen(
        [sys.executable, "-c", _CONTROLLER, *arguments], stdout=subprocess.PIPE, bufsize=0
    ) as controller:
        assert controller.stdout is not None
        for _ in range(2):
            assert _line(controller) == b"acting\n"
        alive = processes(token)
        assert len(alive) >= 6  # the servers, two trials, their boxes and gateways
        controller.kill()
    for pid in alive:
        _gone(pid)
    assert [each for each in reap() if each.run == token] == []
    assert remnants(token) == []


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    assert ready, "the controller says nothing"
    return process.stdout.readline()


def _gone(pid: int) -> None:
    """Wait until a process that nobody asked to end has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], PATIENCE_S)[0], f"process {pid} lives on"
    finally:
        os.close(fd)


def _server(launches: ForkServerLauncher, *, nursery: bool) -> int:
    """The fork server of a run, or the nursery: the child of it that forked the trials."""
    found = processes(launches._options.run_token)  # pyright: ignore[reportPrivateUsage]
    servers = [pid for pid in found if b"envkit.sandbox.forkserver" in _command(pid)]
    parents = {pid: _parent(pid) for pid in servers}
    main = next(pid for pid, parent in parents.items() if parent == os.getpid())
    if not nursery:
        return main
    children = [pid for pid, parent in parents.items() if parent == main]
    return next(pid for pid in children if pid in parents.values())


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def test_the_wait_for_a_turn_is_time_of_the_slot_and_not_of_the_barrier(tmp_path: Path) -> None:
    specs = [
        spec(make_task(tmp_path / "tasks", f"t{n}"), tmp_path / "out", f"t{n}") for n in range(3)
    ]
    ran = run_trials(launcher(tmp_path / "out", barrier=True, concurrency=3, turns=1), specs)
    assert len(ran.records) == 3
    for record in ran.records.values():
        phases = record.attempts[0].phases
        assert list(phases).index("hold") < list(phases).index("turn") < list(phases).index("act")
        assert phases["turn"] > 0
        told = sum(seconds for name, seconds in phases.items() if name != "hold")
        assert slot_s(record) == pytest.approx(told)
