# SPDX-License-Identifier: Apache-2.0
"""A writer or a compaction killed by SIGKILL: nothing it named is lost, nothing repeated."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from envkit.trajectory.compact import compact
from envkit.trajectory.store import Store, segment_files
from envkit.trajectory.writer import Writer

from .rows import same, trajectory

ROWS = tuple(trajectory(f"task__{number:03d}", seed=number, turns=2) for number in range(6))
SCRIPT = Path(__file__).with_name("killed.py")
STEPS = ("write_part", "sync_file", "publish", "sync_directory")
WHEN = ("before", "after")
WRITING = [(f"envkit.durable:{each}", *rest) for each, *rest in product(STEPS, WHEN, (1, 2))]
MERGING = [
    *((f"envkit.durable:{step}", when, 1) for step, when in product(STEPS, WHEN)),
    *(("pathlib:Path.unlink", "after", number) for number in (1, 3, 6)),
    ("envkit.trajectory.compact:sync_directory", "before", 1),
]


def killed(directory: Path, action: str, function: str, when: str, number: int) -> list[str]:
    """What the process had printed when it was killed."""
    command = [sys.executable, str(SCRIPT), str(directory), action, function, when, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(("function", "when", "number"), WRITING)
def test_a_writer_killed_anywhere_keeps_what_it_named_and_goes_on(
    tmp_path: Path, function: str, when: str, number: int
) -> None:
    named = killed(tmp_path, "write", function, when, number)
    store = Store(tmp_path)
    assert store.damage == ()
    assert set(named) <= set(store.ids)
    assert len(store.ids) % 2 == 0, "half a group"
    with Writer.open(tmp_path) as writer:
        for row in ROWS:
            if row.identity.trajectory_id not in writer:
                writer.append(row)
    assert all(same(*pair) for pair in zip(Store(tmp_path), ROWS, strict=True))
    assert sum(len(segment.places) for segment in Store(tmp_path).segments) == len(ROWS)
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize(("function", "when", "number"), MERGING)
def test_merging_killed_anywhere_loses_nothing_and_is_finished_by_the_next(
    tmp_path: Path, function: str, when: str, number: int
) -> None:
    for row in ROWS:
        with Writer.open(tmp_path) as writer:
            writer.append(row)
    killed(tmp_path, "compact", function, when, number)
    assert all(same(*pair) for pair in zip(Store(tmp_path), ROWS, strict=True))
    compact(tmp_path)
    assert not list(tmp_path.glob(".*.part"))
    assert all(same(*pair) for pair in zip(Store(tmp_path), ROWS, strict=True))
    assert [file.name for file in segment_files(tmp_path)] == ["segment-00000001-00000006.arrow"]
