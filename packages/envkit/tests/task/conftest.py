# SPDX-License-Identifier: Apache-2.0
"""The repository's tasks, played in temporary directories without a sandbox."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from envkit.task import World, load_task, materialize

TASKS = Path(__file__).parents[4] / "tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A task with a copy of its world and empty logs, as a trial would see them."""

    task: Path
    files: Path
    logs: Path

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        here = Path(sys.executable).parent
        roots = {"FILESYSTEM_ROOT": str(self.files), "LOGS_ROOT": str(self.logs)}
        env = {**roots, "PATH": f"{here}:{os.environ['PATH']}", "HOME": str(self.logs)}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    def solve(self) -> None:
        """Run the oracle's script."""
        done = self._run([str(self.task / "solution/solve.sh")])
        assert done.returncode == 0, done.stderr

    def call(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run what `code_exec` would run, with the world at its true path's place."""
        return self._run(["sh", "-c", code.replace("/filesystem", str(self.files))])

    def replay(self) -> None:
        """Do what the recorded calls would do, as far as they act on the world."""
        for line in (self.task / "solution/calls.jsonl").read_text().splitlines():
            record = json.loads(line)
            if record.get("tool") == "code_execution_server_code_exec":
                done = self.call(record["arguments"]["code"])
                assert done.returncode == 0, done.stderr
            elif "final_answer" in record:
                self.answer(record["final_answer"])

    def answer(self, text: str) -> None:
        """Leave the final answer where the harness leaves it."""
        (self.logs / "artifacts/final_answer.txt").write_text(text, encoding="utf-8")

    def verify(self) -> dict[str, float]:
        """Run the task's verifier and read its rewards."""
        done = self._run([str(self.task / "tests/test.sh")])
        assert done.returncode == 0, done.stderr
        return json.loads((self.logs / "verifier/reward.json").read_text())

    def verify_fails(self) -> str:
        """Run a verifier that must not judge; returns what it said."""
        done = self._run([str(self.task / "tests/test.sh")])
        assert done.returncode != 0
        assert not (self.logs / "verifier/reward.json").exists()
        return done.stderr


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs scripts of a task is an integration test."""
    for item in items:
        if "play" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def world() -> World:
    """The smaller of the two worlds."""
    return world_of("rail-margin")


def world_of(task: str) -> World:
    """The world that the named task plays in."""
    found = load_task(TASKS / task).world
    assert found is not None
    return found


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The world of the named task on disk, made once; do not write there."""
    cache = tmp_path_factory.mktemp("cache")
    return lambda task: materialize(world_of(task), cache)


@pytest.fixture(scope="session")
def documents(made: Callable[[str], Path]) -> Path:
    """The documents of the smaller world; do not write there."""
    return made("rail-margin") / "filesystem"


@pytest.fixture
def play(made: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Play]:
    """Start a fresh play of the named task."""

    def start(name: str) -> Play:
        files, logs = tmp_path / "filesystem", tmp_path / "logs"
        shutil.copytree(made(name) / "filesystem", files)
        (logs / "artifacts").mkdir(parents=True)
        return Play(task=TASKS / name, files=files, logs=logs)

    return start


@pytest.fixture(scope="session")
def load_verifier() -> Callable[[str], ModuleType]:
    """Load a task's `verify` module into this process; its helpers do not stay importable."""

    monkeypatch = pytest.MonkeyPatch()

    def load(name: str) -> ModuleType:
        tests = TASKS / name / "tests"
        before = set(sys.modules)
        sys.path.insert(0, str(tests))
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Harbor would upload it
        try:
            spec = importlib.util.spec_from_file_location(f"verify_{name}", tests / "verify.py")
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(str(tests))
            monkeypatch.undo()
        for added in set(sys.modules) - before:
            if str(getattr(sys.modules[added], "__file__", "")).startswith(str(tests)):
                del sys.modules[added]
        return module

    return load
