# SPDX-License-Identifier: Apache-2.0
"""The writer: groups durable within a second, one process, nothing half there."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envkit.trajectory import writer as writer_module
from envkit.trajectory.errors import BrokenInvariant, SameRow, StoreBusy
from envkit.trajectory.store import Store, segment_files
from envkit.trajectory.writer import Writer

from .rows import same, trajectory, with_alternatives, with_stream


class Clock:
    """A clock that is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def row(number: int) -> Any:
    return trajectory(f"task__{number:03d}", seed=number, turns=2)


def test_rows_of_one_second_are_one_segment(tmp_path: Path) -> None:
    clock = Clock()
    with Writer.open(tmp_path, clock=clock) as writer:
        assert writer.due_s is None
        assert writer.append(row(0)) == ()
        clock.now = 0.75
        assert writer.append(row(1)) == ()
        assert writer.due_s == 0.25
        clock.now = 1.0
        assert Store(tmp_path).ids == ()
        assert writer.append(row(2)) == ("task__000", "task__001", "task__002")
        assert Store(tmp_path).ids == ("task__000", "task__001", "task__002")
        assert (writer.due_s, writer.commit()) == (None, ())
    assert [file.name for file in segment_files(tmp_path)] == ["segment-00000001.arrow"]


def test_a_large_group_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "GROUP_BYTES", 1)
    with Writer.open(tmp_path, clock=Clock()) as writer:
        assert writer.append(row(0)) == ("task__000",)


def test_rows_with_and_without_alternatives_are_no_one_segment(tmp_path: Path) -> None:
    richer = with_alternatives(row(1))
    with Writer.open(tmp_path, clock=Clock()) as writer:
        assert writer.append(row(0)) == ()
        assert writer.append(richer) == ("task__000",)
        assert writer.append(row(2)) == ("task__001",)
    assert len(segment_files(tmp_path)) == 3
    for made, read in zip([row(0), richer, row(2)], Store(tmp_path), strict=True):
        assert same(made, read)


def test_what_waits_is_written_at_the_end(tmp_path: Path) -> None:
    with Writer.open(tmp_path, clock=Clock()) as writer:
        writer.append(row(0))
    with Writer.open(tmp_path, clock=Clock()) as writer:
        assert "task__000" in writer
        writer.append(row(1))
    assert [file.name for file in segment_files(tmp_path)] == [
        "segment-00000001.arrow",
        "segment-00000002.arrow",
    ]


def test_an_id_is_taken_once(tmp_path: Path) -> None:
    with Writer.open(tmp_path, clock=Clock()) as writer:
        writer.append(row(0))
        with pytest.raises(SameRow, match="'task__000'"):
            writer.append(row(0))
    with Writer.open(tmp_path, clock=Clock()) as writer, pytest.raises(SameRow):
        writer.append(row(0))


def test_a_row_that_says_what_cannot_be_costs_no_other(tmp_path: Path) -> None:
    bad = with_stream(row(1), segments=())
    with Writer.open(tmp_path, clock=Clock()) as writer:
        writer.append(row(0))
        with pytest.raises(BrokenInvariant):
            writer.append(bad)
        assert writer.commit() == ("task__000",)
        writer.append(row(1))
    assert Store(tmp_path).ids == ("task__000", "task__001")


def test_a_second_process_is_told_which_one_writes(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from envkit.trajectory.writer import Writer\n"
        "with Writer.open(Path(sys.argv[1])): print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreBusy, match=f"process {other.pid}"), Writer.open(tmp_path):
            pass
        assert other.stdin is not None
        other.stdin.close()
    with Writer.open(tmp_path):
        pass


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".segment-00000001.arrow.part").write_bytes(b"half")
    with Writer.open(tmp_path, clock=Clock()) as writer:
        writer.append(row(0))
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "segment-00000001.arrow"]


@pytest.mark.parametrize("step", ["sync_file", "publish", "sync_directory"])
def test_a_full_disk_stores_nothing_of_the_group_and_it_can_be_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Writer.open(tmp_path, clock=Clock()) as writer:
        writer.append(row(0))
        with monkeypatch.context() as patch:
            patch.setattr(f"envkit.durable.{step}", full)
            with pytest.raises(OSError, match="No space"):
                writer.commit()
        assert [each.name for each in tmp_path.iterdir()] == [".lock"]
        writer.append(row(0))
    assert Store(tmp_path).ids == ("task__000",)
