# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envkit.deadline import DeadlineExceeded
from envkit.fault import TaskError
from envkit.task import World, load_world_dir, materialize

WRITES = """\
import sys, pathlib
out = pathlib.Path(sys.argv[1])
(out / "filesystem/a").mkdir(parents=True)
(out / "filesystem/a/b.txt").write_text("text")
with open({log!r}, "a") as log:
    log.write("ran\\n")
"""


def make_world(tmp_path: Path, script: str, timeout_s: float = 30) -> World:
    folder = tmp_path / "worlds/w"
    folder.mkdir(parents=True)
    (folder / "generate.py").write_text(script)
    config = f'[generator]\nscript = "generate.py"\ntimeout_s = {timeout_s}\n'
    (folder / "world.toml").write_text(config)
    return load_world_dir(folder)


def leftovers(cache: Path) -> list[str]:
    return [path.name for path in (cache / "worlds").glob(".*")]


def test_one_of_many_callers_builds_and_all_see_the_whole_world(tmp_path: Path) -> None:
    log, cache = tmp_path / "log", tmp_path / "cache"
    world = make_world(tmp_path, "import time; time.sleep(0.2)\n" + WRITES.format(log=str(log)))
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: materialize(world, cache), range(8)))
    assert log.read_text() == "ran\n"
    (only,) = found
    assert only == cache / "worlds" / world.digest
    assert (only / "filesystem/a/b.txt").read_text() == "text"
    assert (only / "apps_data").is_dir()
    assert leftovers(cache) == []


@pytest.mark.integration
def test_two_processes_build_once(tmp_path: Path) -> None:
    log, cache = tmp_path / "log", tmp_path / "cache"
    world = make_world(tmp_path, "import time; time.sleep(0.3)\n" + WRITES.format(log=str(log)))
    code = (
        "from pathlib import Path; from envkit.task import load_world_dir, materialize\n"
        f"materialize(load_world_dir(Path({str(world.dir)!r})), Path({str(cache)!r}))"
    )
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert log.read_text() == "ran\n"


def test_times_and_modes_do_not_depend_on_when_it_was_made(tmp_path: Path) -> None:
    world = make_world(tmp_path, WRITES.format(log=str(tmp_path / "log")))
    root = materialize(world, tmp_path / "cache")
    for path in (root / "filesystem", *(root / "filesystem").rglob("*")):
        assert path.stat().st_mtime == 1_767_225_600
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)


def test_a_world_that_something_changed_is_built_anew(tmp_path: Path) -> None:
    world = make_world(tmp_path, WRITES.format(log=str(tmp_path / "log")))
    text = materialize(world, tmp_path / "cache") / "filesystem/a/b.txt"
    text.write_text("poison")
    assert materialize(world, tmp_path / "cache") / "filesystem/a/b.txt" == text
    assert text.read_text() == "text"
    os.unlink(text)
    materialize(world, tmp_path / "cache")
    assert text.is_file()


def test_a_failing_generator_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path, "raise SystemExit('no paper left\\nat all')")
    with pytest.raises(TaskError, match=r"generate\.py: exit 1: no paper left at all") as caught:
        materialize(world, tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path / "cache") == []
    assert not (tmp_path / "cache/worlds" / world.digest).exists()


def test_a_hanging_generator_is_ended_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = (
        "import subprocess, pathlib, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(child.pid))\n"
        "time.sleep(600)"
    )
    world = make_world(tmp_path, script, timeout_s=1)
    with pytest.raises(DeadlineExceeded) as caught:
        materialize(world, tmp_path / "cache")
    assert (caught.value.op, caught.value.seconds) == ("world_generate", 1)
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_what_a_killed_builder_left_is_in_nobodys_way(tmp_path: Path) -> None:
    world = make_world(tmp_path, WRITES.format(log=str(tmp_path / "log")))
    stale = tmp_path / f"cache/worlds/.building-{world.digest}/world/filesystem/a"
    stale.mkdir(parents=True)
    assert (materialize(world, tmp_path / "cache") / "filesystem/a/b.txt").is_file()
    assert leftovers(tmp_path / "cache") == []


def test_a_world_without_a_generator_is_copied(tmp_path: Path) -> None:
    folder = tmp_path / "worlds/w"
    (folder / "filesystem/deep").mkdir(parents=True)
    (folder / "filesystem/deep/a.txt").write_text("a")
    (folder / "world.toml").write_text("")
    root = materialize(load_world_dir(folder), tmp_path / "cache")
    assert (root / "filesystem/deep/a.txt").read_text() == "a"


def test_the_generator_sees_no_secret_of_the_callers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    script = "import os, sys; sys.exit('SOME_KEY' in os.environ or os.environ['TZ'] != 'UTC')"
    materialize(make_world(tmp_path, script), tmp_path / "cache")
