# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from envkit.fault import TaskError
from envkit.task import find_tasks, lint, load_task, load_world_dir

TASKS = Path(__file__).parents[4] / "tasks"
MINIMAL = """\
artifacts = []
[agent]
timeout_sec = 60
[verifier]
environment_mode = "separate"
[environment]
network_mode = "no-network"
"""


def make_task(where: Path, config: str = MINIMAL) -> Path:
    for folder in ("environment", "solution", "tests"):
        (where / folder).mkdir(parents=True)
    (where / "task.toml").write_text(config)
    (where / "instruction.md").write_text("Do it.\n")
    (where / "tests/test.sh").write_text("#!/bin/sh\n")
    return where


def test_finds_the_tasks_and_not_the_worlds() -> None:
    assert [path.name for path in find_tasks(TASKS)] == [
        "budget-tolls", "december-accruals", "lindale-forecast", "merrowfield-margin",
        "rail-margin", "skelwith-pack", "tarnbrook-overcharge", "utilisation-gap",
    ]  # fmt: skip


def test_a_task_directory_finds_itself() -> None:
    assert find_tasks(TASKS / "rail-margin") == [TASKS / "rail-margin"]


def test_a_child_without_task_toml_is_found_so_that_it_can_be_reported(tmp_path: Path) -> None:
    make_task(tmp_path / "a")
    (make_task(tmp_path / "b") / "task.toml").unlink()
    (tmp_path / "worlds/w").mkdir(parents=True)
    assert [path.name for path in find_tasks(tmp_path)] == ["a", "b"]
    with pytest.raises(TaskError, match=r"b/task\.toml: no such file"):
        load_task(tmp_path / "b")


@pytest.mark.parametrize(("name", "says"), [("none", "no such directory"), ("", "no task in it")])
def test_nothing_to_find_is_one_line(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(TaskError, match=says) as caught:
        find_tasks(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_loaded_task_has_what_a_trial_needs() -> None:
    task = load_task(TASKS / "budget-tolls")
    assert task.name == "budget-tolls"
    assert (task.agent_timeout_s, task.verifier_timeout_s) == (600.0, 120.0)
    assert task.has_oracle
    assert task.calls_path == TASKS / "budget-tolls/solution/calls.jsonl"
    assert task.world is not None
    assert task.world.servers == ("filesystem_server", "code_execution_server", "pdf_server")


def test_a_task_without_a_world_or_a_solution_loads(tmp_path: Path) -> None:
    task = load_task(make_task(tmp_path / "plain"))
    assert (task.name, task.world, task.calls_path, task.has_oracle) == (
        "plain",
        None,
        None,
        False,
    )


def test_digest_follows_content_and_nothing_else(tmp_path: Path) -> None:
    task = make_task(tmp_path / "a")
    first = load_task(task).digest
    (task / "tests/__pycache__").mkdir()
    (task / "tests/__pycache__/x.pyc").write_bytes(b"x")
    shutil.copytree(task, tmp_path / "copy/a")
    assert load_task(task).digest == first == load_task(tmp_path / "copy/a").digest
    (task / "tests/test.sh").write_text("#!/bin/sh\nexit 1\n")
    assert load_task(task).digest != first


def test_digest_of_a_task_follows_its_world(tmp_path: Path) -> None:
    task = make_task(tmp_path / "a", MINIMAL + '[metadata]\nworld = "w"\n')
    documents = tmp_path / "worlds/w/filesystem"
    documents.mkdir(parents=True)
    (documents.parent / "world.toml").write_text('servers = ["pdf_server"]\n')
    first = load_task(task).digest
    (documents / "new.txt").write_text("new")
    assert load_task(task).digest != first


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("timeout_sec = 60", "timeout_sec = ", r"task\.toml: .*line 3, column 15"),
        ("timeout_sec = 60", "timeout_secs = 60", r"\[agent\]\.timeout_sec: absent"),
        ("timeout_sec = 60", "timeout_sec = inf", r"\[agent\]\.timeout_sec: not a number"),
        ("[environment]", '[metadata]\nworld = "gone"\n[environment]', "no directory .*gone"),
        ("[environment]", '[metadata]\nworld = "../x"\n[environment]', "no world name"),
        ("[environment]", '[[steps]]\nname = "one"\n[environment]', "multi-step"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    task = make_task(tmp_path / "a", MINIMAL.replace(old, new))
    with pytest.raises(TaskError, match=says) as caught:
        load_task(task)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["instruction.md", "tests/test.sh"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    task = make_task(tmp_path / "a")
    (task / name).unlink()
    with pytest.raises(TaskError, match=f"{name}: no such file"):
        load_task(task)


def test_a_link_out_of_the_task_is_refused(tmp_path: Path) -> None:
    task = make_task(tmp_path / "a")
    (task / "tests/secret").symlink_to("/etc/hostname")
    with pytest.raises(TaskError, match="tests/secret: a link that leaves"):
        load_task(task)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("server = []", r"world\.toml:server: no such key.*did you mean servers"),
        ('servers = "pdf"', "servers: not a list"),
        ('root = "files"', "root: not an absolute path"),
        ('name = "other"', "not the directory's name"),
        ('[generator]\nscript = "no.py"', "no script 'no.py'"),
        ("[generator]\nscript = 5", "no script 5"),
        ('[generator]\nscript = "../a.py"', "no script"),
        ("= 5", "line 1"),
    ],
)
def test_a_broken_world_is_refused(tmp_path: Path, config: str, says: str) -> None:
    world = tmp_path / "worlds/w"
    (world / "filesystem").mkdir(parents=True)
    (world.parent / "a.py").write_text("")
    (world / "world.toml").write_text(config)
    with pytest.raises(TaskError, match=says):
        load_world_dir(world)


PLACES = ["worlds/w", "w"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "config", ["= 5", "server = []", 'root = "files"', "[generator]\nscript=5"]
)
def test_a_broken_world_is_named_by_its_own_path(tmp_path: Path, place: str, config: str) -> None:
    world = tmp_path / place
    (world / "filesystem").mkdir(parents=True)
    (world / "world.toml").write_text(config)
    with pytest.raises(TaskError) as caught:
        load_world_dir(world)
    assert str(caught.value).startswith(f"{world}/world.toml:")


@pytest.mark.parametrize("config", ["= 5", "server = []"])
def test_a_task_names_its_broken_world_by_a_path_that_exists(tmp_path: Path, config: str) -> None:
    task = make_task(tmp_path / "a", MINIMAL + '[metadata]\nworld = "w"\n')
    world = tmp_path / "worlds/w"
    (world / "filesystem").mkdir(parents=True)
    (world / "world.toml").write_text(config)
    with pytest.raises(TaskError) as caught:
        load_task(task)
    assert Path(str(caught.value).split(":")[0]).samefile(world / "world.toml")
    wheres = [problem.where for problem in lint(task)]
    assert any(where.startswith("../worlds/w/world.toml") for where in wheres)


@pytest.fixture
def forbidden(tmp_path: Path) -> Generator[Path]:
    """A directory that others may enter, while this process is nobody of rank."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        as_root = os.geteuid() == 0
        if as_root:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if as_root:
                os.seteuid(0)


def as_owner(work: Callable[[], Any]) -> None:
    """What the owner of the files does, where that is another than who reads them."""
    me, owner = os.geteuid(), os.getuid()
    os.seteuid(owner)
    work()
    os.seteuid(me)


FORBIDDEN = ["task.toml", "instruction.md", "tests/test.sh", "solution/calls.jsonl", "."]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_file_without_the_right_to_read_it_is_said_to_be_one(forbidden: Path, name: str) -> None:
    task = forbidden / "a"

    def lock() -> None:
        (make_task(task) / "solution/calls.jsonl").write_text('{"final_answer": "x"}\n')
        (task / name).chmod(0o000)

    as_owner(lock)
    try:
        problems = [p for p in lint(task) if p.message == "Permission denied"]
        assert problems
        assert all("right to read" in p.fix for p in problems)
        assert (task / problems[0].where).is_relative_to(task / name)
        assert ".." not in problems[0].where
        with pytest.raises(TaskError, match="Permission denied; give this user") as caught:
            load_task(task)
        assert str(caught.value).startswith(f"{task / name}")
    finally:
        as_owner(lambda: (task / name).chmod(0o755))


def test_a_directory_without_the_right_to_list_it_is_one_line(forbidden: Path) -> None:
    tasks = forbidden / "tasks"
    as_owner(lambda: tasks.mkdir(mode=0o700))
    as_owner(lambda: tasks.chmod(0o000))
    with pytest.raises(TaskError, match=r"tasks.*: Permission denied; give this user"):
        find_tasks(tasks)
    as_owner(lambda: tasks.chmod(0o700))


def test_tasks_are_read_without_harbor() -> None:
    code = (
        "import sys; sys.modules['harbor'] = None; from pathlib import Path\n"
        "from envkit.task import find_tasks, lint, load_task\n"
        f"[(load_task(t), lint(t)) for t in find_tasks(Path({str(TASKS)!r}))]\n"
        "assert not {'mcp', 'torch', 'pydantic', 'openpyxl'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
