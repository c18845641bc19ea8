# SPDX-License-Identifier: Apache-2.0
"""A checkpoint is whole or is none, and a run goes on from the newest that is whole."""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rltrain.loop.checkpoint import prune
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import joined
from rltrain.refused import Refused

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import recorded
import runs

pytestmark = pytest.mark.trainer


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps with checkpoints after 2, 4 and 6, all kept."""
    place = tmp_path_factory.mktemp("ended")
    policy = recorded.policy(place / "policy")
    recorded.record(place / "store", policy, recorded.Asked(groups=4, samples=4))
    given = ("batch.prompts=2", "run.epochs=3", "checkpoint.every=2", "checkpoint.keep=3")
    runs.begun(policy, place / "store", place / "run", *given)
    return place / "run"


@pytest.fixture
def run(ended: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(ended, tmp_path / "run"))


def steps(run: Path) -> list[int]:
    return sorted(int(each.name[5:]) for each in (run / "checkpoints").glob("step-*"))


def last(run: Path) -> list[bytes]:
    found = sorted((run / "checkpoints").glob("step-*"))[-1]
    return [each.read_bytes() for each in sorted(found.rglob("*.distcp"))]


def spoil(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def shard(run: Path, step: int) -> Path:
    return run / f"checkpoints/step-{step:08}/state/__0_0.distcp"


def test_all_that_were_to_be_kept_are_kept(run: Path) -> None:
    assert steps(run) == [2, 4, 6]


@pytest.mark.parametrize("place", [0, 5_000, -1])
def test_one_whose_bytes_have_changed_is_named_and_passed_over(run: Path, place: int) -> None:
    right = last(run)
    spoil(shard(run, 6), place)
    heard = runs.Heard()
    again = runs.resumed(run, heard)
    assert again.resumed_at == 4
    assert any(
        "step-00000006: state/__0_0.distcp is not what was written" in each for each in heard.lines
    )
    assert last(run) == right
    assert steps(run) == [2, 4, 6]


@pytest.mark.parametrize("lost", ["commit.json", "state/.metadata", "state/__0_0.distcp"])
def test_one_that_misses_a_file_is_passed_over(run: Path, lost: str) -> None:
    (run / "checkpoints/step-00000006" / lost).unlink()
    assert runs.resumed(run).resumed_at == 4


def test_a_commit_that_cannot_be_read_is_passed_over(run: Path) -> None:
    (run / "checkpoints/step-00000006/commit.json").write_text('{"step": "six"', "utf-8")
    heard = runs.Heard()
    assert runs.resumed(run, heard).resumed_at == 4
    assert any("commit.json cannot be read" in each for each in heard.lines)


def test_where_none_is_whole_the_run_is_not_begun_anew_over_it(run: Path) -> None:
    for step in steps(run):
        spoil(shard(run, step), 9)
    with pytest.raises(Refused, match="no checkpoint in it is whole"):
        runs.resumed(run)
    assert steps(run) == [2, 4, 6]


def test_what_a_kill_has_left_is_taken_away_with_the_next_one(run: Path) -> None:
    spoil(shard(run, 6), 9)
    left = run / "checkpoints/.step-00000006.part"
    (left / "state").mkdir(parents=True)
    (left / "state/__0_0.distcp").write_bytes(b"half")
    gone = run / "checkpoints/.gone-step-00000001"
    gone.mkdir()
    runs.resumed(run)
    assert [each.name for each in (run / "checkpoints").glob(".*")] == []


def test_only_the_newest_are_kept(run: Path) -> None:
    config = (run / "config.toml").read_text("utf-8")
    (run / "config.toml").write_text(config.replace("keep = 3", "keep = 1"), "utf-8")
    spoil(shard(run, 6), 9)
    runs.resumed(run)
    assert steps(run) == [6]


def test_the_one_that_earned_most_stays_however_old_it_is(tmp_path: Path) -> None:
    for step in range(1, 7):
        (tmp_path / f"step-{step:08}").mkdir()
    prune(tmp_path, 2, 6, spared=3)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        f"step-{step:08}" for step in (3, 5, 6)
    ]


def test_steps_that_are_damaged_do_not_crowd_out_whole_ones(run: Path) -> None:
    """Of two that are to be kept, none is one that was passed over."""
    config = (run / "config.toml").read_text("utf-8")
    fewer = config.replace("keep = 3", "keep = 2").replace("every = 2", "every = 1")
    (run / "config.toml").write_text(fewer, "utf-8")
    spoil(shard(run, 6), 9)
    spoil(shard(run, 4), 9)
    again = runs.resumed(run)
    assert again.resumed_at == 2
    assert steps(run) == [5, 6]


def test_one_of_other_trajectories_is_refused(run: Path) -> None:
    commit = run / "checkpoints/step-00000006/commit.json"
    text = commit.read_text("utf-8")
    start = text.index('"data": "') + 9
    commit.write_text(text[:start] + "0" * 64 + text[start + 64 :], "utf-8")
    with pytest.raises(Refused, match="is of other trajectories"):
        runs.resumed(run)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As where a disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_one_that_cannot_be_written_is_one_line_and_harms_none_before_it(run: Path) -> None:
    spoil(shard(run, 6), 9)
    before = shard(run, 4).read_bytes()
    with (
        files_of_at_most(20_000),
        pytest.raises(Refused, match=r"cannot be written: .*; make room"),
    ):
        runs.resumed(run)
    assert shard(run, 4).read_bytes() == before
    assert runs.resumed(run).step == 6


def test_one_of_another_policy_is_refused(run: Path, tmp_path: Path) -> None:
    wider = recorded.policy(tmp_path / "wider", hidden_size=64)
    with joined():
        backend = FsdpBackend(PolicyConfig(path=str(wider), dtype="float32"), OptimizerConfig())
        with pytest.raises(Refused, match="state: is not of this policy: "):
            backend.restore(run / "checkpoints/step-00000006/state")
