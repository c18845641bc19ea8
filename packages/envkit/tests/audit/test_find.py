# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

from envkit.audit.find import MAX_DEPTH, TraceFile, TrialDir, find
from envkit.audit.types import Ignored, Unreadable


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}", "utf-8")


def test_every_file_is_a_candidate_or_counted(tmp_path: Path) -> None:
    make(tmp_path, "a/trajectory.json", "a/grades.json", "a/notes.txt", "b/run_7.json", "LICENSE")
    entries = list(find(tmp_path))
    files = [entry.path.name for entry in entries if isinstance(entry, TraceFile)]
    assert files == ["trajectory.json", "run_7.json"]
    assert sum(entry.count for entry in entries if isinstance(entry, Ignored)) == 3


def test_a_trial_directory_is_one_candidate(tmp_path: Path) -> None:
    make(tmp_path, "job/config.json", "job/result.json", "job/lock.json")
    make(tmp_path, "job/t__1/result.json", "job/t__1/config.json", "job/t__1/agent/trajectory.json")
    make(tmp_path, "job/t__2/config.json", "job/t__2/trial.log")
    trials = [entry.path.name for entry in find(tmp_path) if isinstance(entry, TrialDir)]
    assert trials == ["t__1", "t__2"]


def test_a_single_file_is_its_own_root(tmp_path: Path) -> None:
    make(tmp_path, "any_name.json")
    assert list(find(tmp_path / "any_name.json")) == [TraceFile(path=tmp_path / "any_name.json")]


def test_links_are_reported_when_they_leave_and_counted_when_they_stay(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(tmp_path, "outside/trajectory.json", "root/a/trajectory.json")
    (root / "out.json").symlink_to(tmp_path / "outside" / "trajectory.json")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "nothing.json").symlink_to(root / "absent")
    (root / "again").symlink_to(root / "a")
    (root / "a" / "loop").symlink_to(root)
    entries = list(find(root))
    named = {entry.file: entry.reason for entry in entries if isinstance(entry, Unreadable)}
    assert sorted(named) == ["nothing.json", "out", "out.json"]
    assert "out of the audited directory" in named["out"]
    assert sum(isinstance(entry, TraceFile) for entry in entries) == 1
    assert sum(isinstance(entry, Ignored) for entry in entries) == 2


def test_directories_without_end_are_named_not_followed(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 5))
    deep.mkdir(parents=True)
    (found,) = find(tmp_path)
    assert isinstance(found, Unreadable)
    assert "nested too deeply" in found.reason


def test_a_special_file_is_counted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list(find(tmp_path)) == [Ignored()]
