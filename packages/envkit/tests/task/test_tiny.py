# SPDX-License-Identifier: Apache-2.0
"""The 32 tasks of `tasks/tiny`: what they earn, and that nothing is right in all of them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from envkit.task import find_tasks, lint, load_task

from .conftest import TASKS, Play

TINY = TASKS / "tiny"
type Start = Callable[[str], Play]


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """The program that writes the tasks."""
    spec = importlib.util.spec_from_file_location("make_tiny_tasks", TINY / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module


def test_there_are_32_of_one_world_and_nothing_is_wrong_with_them() -> None:
    found = find_tasks(TINY)
    assert len(found) == 32
    assert [str(problem) for task in found for problem in lint(task)] == []
    worlds = [load_task(task).world for task in found]
    assert {world.name for world in worlds if world} == {"card-index"}


def test_they_are_not_among_the_tasks_beside_their_directory() -> None:
    assert not [task for task in find_tasks(TASKS) if TINY in (task, *task.parents)]


def test_the_files_are_those_that_their_program_writes(make: ModuleType) -> None:
    written = {name: (text, runs) for name, text, runs in make.files()}
    lying = {file.relative_to(TINY).as_posix(): file for file in TINY.rglob("*") if file.is_file()}
    others = ("make.py", "verify.sh", "world.toml", "label.txt")
    kept = {name: file for name, file in lying.items() if file.name not in others}
    kept = {name: file for name, file in kept.items() if "__pycache__" not in name}
    assert kept.keys() == written.keys()
    for name, (text, runs) in written.items():
        assert kept[name].read_text("utf-8") == text, name
        assert bool(kept[name].stat().st_mode & 0o100) == runs, name


def test_whoever_does_the_same_everywhere_earns_an_eighth_at_most(make: ModuleType) -> None:
    by_kind: dict[str, list[tuple[str, ...]]] = {}
    for task in make.tasks():
        by_kind.setdefault(task.kind, []).append(tuple(make.wanted(task).splitlines()))
    assert {kind: len(rows) for kind, rows in by_kind.items()} == dict.fromkeys(make.KINDS, 8)
    for rows in by_kind.values():
        for criterion in zip(*rows, strict=True):
            often = Counter(criterion)
            assert set(often.values()) == {1} or next(iter(often)).endswith("=''")


@pytest.mark.parametrize("name", [f"{kind}-fig" for kind in ("look", "file", "both", "next")])
def test_the_oracle_earns_all_and_doing_nothing_earns_nothing(play: Start, name: str) -> None:
    at = play(f"tiny/{name}")
    nothing = at.verify()
    assert set(nothing.values()) == {0}
    at.solve()
    everything = at.verify()
    assert set(everything.values()) == {1}
    assert len(everything) == {"look": 3, "file": 4}.get(name.split("-")[0], 5)


@pytest.mark.integration
def test_the_oracle_works_all_of_them_out_as_the_recorded_calls_do(
    make: ModuleType, made: Callable[[str], Path], tmp_path: Path
) -> None:
    for task in make.tasks():
        place = tmp_path / task.name
        shutil.copytree(made("tiny/look-apple") / "filesystem", place / "filesystem")
        (place / "logs/artifacts").mkdir(parents=True)
        at = Play(task=TINY / task.name, files=place / "filesystem", logs=place / "logs")
        at.solve()
        answer = (at.logs / "artifacts/final_answer.txt").read_text()
        assert answer == task.answer
        if task.copied_to:
            assert (at.files / task.copied_to[1:]).read_text() == task.asked.text


ANSWERS = {
    "Hugo, orange": {"keeper": 1, "colour": 1},
    "hugo ORANGE": {"keeper": 1, "colour": 1},
    "Its keeper is Hugo; its colour is orange.\n": {"keeper": 1, "colour": 1},
    "Hugo, teal": {"keeper": 1, "colour": 0},
    "orange": {"keeper": 0, "colour": 1},
    "Hugo or Ada, orange": {"keeper": 0, "colour": 1},
    "Ada, Ben, Cleo, Dan, Eva, Finn, Gia, Hugo, orange, teal": {"keeper": 0, "colour": 0},
    "Hugo, Hugo, orangery": {"keeper": 1, "colour": 0},
    "": {"keeper": 0, "colour": 0},
    "* ? [a-z]": {"keeper": 0, "colour": 0},
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_judged_word_by_word(play: Start, answer: str) -> None:
    at = play("tiny/next-fig")
    at.answer(answer)
    marks = at.verify()
    assert {name: marks[name] for name in ("keeper", "colour")} == ANSWERS[answer]
    assert marks["reward"] == pytest.approx(sum(ANSWERS[answer].values()) / 4)


COPIES = {
    "the next card": ([("walnut", "delta.txt")], {"card": 1, "place": 1}),
    "the card itself": ([("fig", "delta.txt")], {"card": 0, "place": 1}),
    "another name": ([("walnut", "hotel.txt")], {"card": 1, "place": 0}),
    "a hidden name": ([("walnut", ".delta.txt")], {"card": 1, "place": 0}),
    "twice": ([("walnut", "delta.txt"), ("walnut", "hotel.txt")], {"card": 0, "place": 0}),
    "beside a hidden one": ([("walnut", "delta.txt"), ("fig", ".f")], {"card": 0, "place": 0}),
    "in a folder": ([("walnut", "delta.txt/a.txt")], {"card": 0, "place": 1}),
    "over the label": ([("walnut", "label.txt")], {"card": 0, "place": 0}),
}


@pytest.mark.parametrize("case", COPIES)
def test_a_copy_is_judged_by_what_it_says_and_by_its_name(play: Start, case: str) -> None:
    at = play("tiny/next-fig")
    copies, right = COPIES[case]
    for card, name in copies:
        target = at.files / "tray" / name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(at.files / f"cards/{card}.txt", target)
    marks = at.verify()
    assert {name: marks[name] for name in ("card", "place")} == right
    assert marks["reward"] == pytest.approx(sum(right.values()) / 4)


def test_a_third_of_the_criteria_is_a_third_of_the_reward(play: Start) -> None:
    at = play("tiny/file-fig")
    at.answer("The copy is called foxtrot.txt")
    marks = at.verify()
    assert marks == {"reward": 0.333, "named": 1, "card": 0, "place": 0}


@pytest.mark.parametrize("gone", ["artifacts", "tray"])
def test_what_did_not_arrive_is_not_judged(play: Start, gone: str) -> None:
    at = play("tiny/both-fig")
    at.solve()
    shutil.rmtree(at.logs / "artifacts" if gone == "artifacts" else at.files / "tray")
    assert f"{gone} did not arrive, so there is nothing to judge" in at.verify_fails()


@pytest.mark.integration
def test_their_recorded_calls_earn_all_with_the_two_tools_that_the_world_offers(
    tmp_path: Path,
) -> None:
    envkit = [sys.executable, "-c", "from envkit.cli import main; main()"]
    words = ["preflight", str(TINY), "--agent", "replay", "--repeat", "1", "--concurrency", "4"]
    done = subprocess.run(
        [*envkit, *words, "--json", "--report", str(tmp_path / "report")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert report["verdict"] == "PASS", report["why"]
    assert (report["trials"], report["rewards"]["mean"]) == (32, 1.0)
    heard = [json.loads(file.read_text()) for file in tmp_path.rglob("agent/trajectory.json")]
    names = {
        tuple(each["function"]["name"] for each in document["agent"]["tool_definitions"])
        for document in heard
    }
    assert names == {("filesystem_server_read_text_file", "filesystem_server_copy_file")}
