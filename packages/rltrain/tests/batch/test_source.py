# SPDX-License-Identifier: Apache-2.0
"""What a directory of trajectories holds for a trainer, and what of it is refused or left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envkit.trajectory.columns import CHECKSUM, encode
from envkit.trajectory.compact import compact
from envkit.trajectory.errors import Damaged, OtherSchema
from envkit.trajectory.head import head_of
from envkit.trajectory.segment import Row, encode_segment, read_segment
from envkit.trajectory.store import segment_files
from envkit.trajectory.types import Sampling, Trajectory
from envkit.trajectory.writer import Writer
from rltrain.batch.sample import Sample
from rltrain.batch.source import Recorded, recorded, tokenizer_digest
from rltrain.refused import Refused

from .made import trajectory

NAMES = ("b__000", "b__001", "a__000", "a__001", "b__002")
ROWS = tuple(map(trajectory, NAMES))

type Change = Callable[[Trajectory], Trajectory]


def write(directory: Path, *rows: Trajectory) -> Path:
    """All of them in one segment."""
    with Writer.open(directory, clock=lambda: 0.0) as writer:
        for row in rows:
            writer.append(row)
    return segment_files(directory)[-1]


def identified(**changes: Any) -> Change:
    return lambda row: replace(row, identity=replace(row.identity, **changes))


def worth(**changes: Any) -> Change:
    return lambda row: replace(row, outcome=replace(row.outcome, **changes))


def streamed(**arrays: Callable[[Any], Any]) -> Change:
    def changed(row: Trajectory) -> Trajectory:
        stream = row.episode.stream
        new = {name: make(getattr(stream, name)) for name, make in arrays.items()}
        return replace(row, episode=replace(row.episode, stream=replace(stream, **new)))

    return changed


def evaluation(row: Trajectory) -> Trajectory:
    return replace(row, episode=replace(row.episode, evaluation=True))


def spoil(file: Path, row: str) -> None:
    """One bit of a row's bytes."""
    (place,) = (each for each in read_segment(file).places if each.trajectory_id == row)
    data = bytearray(file.read_bytes())
    data[place.start + place.length // 2] ^= 1
    file.write_bytes(data)


def versioned(directory: Path, row: Trajectory, version: str) -> Path:
    """A segment of another version."""
    batch = encode(row)
    checksum = batch.column(CHECKSUM)[0].as_py()
    made = Row(head=head_of(row), checksum=checksum, batch=batch)
    directory.mkdir(exist_ok=True)
    file = directory / "segment-00000009.arrow"
    file.write_bytes(encode_segment([made], version))
    return file


def grouped(found: Recorded) -> dict[str, list[str]]:
    return {each.name: [row.trajectory_id for row in each.rows] for each in found.groups}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    directory = tmp_path / "store"
    write(directory, *ROWS)
    return directory


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["", "trajectories"])
def test_a_store_and_a_run_that_has_one_are_both_read(tmp_path: Path, inside: str) -> None:
    write(tmp_path / "run" / inside, *ROWS)
    found = recorded(tmp_path / "run")
    assert grouped(found) == {"b": ["b__000", "b__001", "b__002"], "a": ["a__000", "a__001"]}
    assert [row.trajectory_id for row in found.rows] == list(NAMES)


def test_what_is_known_of_a_row_is_what_its_sample_has(store: Path) -> None:
    invalid = worth(reward=None, reward_valid=False, loss_live=False, verdict="no_verdict")
    warm = identified(sampling=Sampling(temperature=0.5, logprobs_mode="processed"))
    write(store, invalid(trajectory("c__000")), warm(trajectory("c__001")))
    found = recorded(store)
    samples = {each.trajectory_id: each for each in found.samples(found.groups)}
    assert samples.keys() == {row.trajectory_id for row in found.rows}
    for row in found.rows:
        sample = samples[row.trajectory_id]
        assert (row.group_id, row.reward) == (sample.group_id, sample.reward)
        assert (row.valid, row.live) == (sample.valid, sample.live)
        assert (row.tokens, row.trained) == (len(sample), sample.trained) == (18, 8)
        assert (row.temperature, row.environment_tokens) == (sample.temperature, 6)
    assert [row.valid for row in found.rows] == [*[True] * 5, False, True]
    assert [row.temperature for row in found.rows] == [*[1.0] * 6, 0.5]


def test_samples_come_group_by_group_as_they_are_asked_for(store: Path) -> None:
    found = recorded(store)
    b, a = found.groups
    names = [each.trajectory_id for each in found.samples([a, b])]
    assert names == ["a__000", "a__001", "b__000", "b__001", "b__002"]
    assert all(isinstance(each, Sample) for each in found.samples([a]))


@pytest.mark.parametrize("k", [0, 2])
def test_it_is_known_whether_a_row_has_alternatives(tmp_path: Path, k: int) -> None:
    row = trajectory("a__000", Sampling(top_logprobs=k))
    mask = row.episode.stream.loss_mask[:, None]
    if k:
        ids = np.where(mask, np.arange(k, dtype=np.int32), np.int32(-1))
        logprobs = np.where(mask, np.float32(-1.0), np.full(k, np.nan, np.float32))
        row = streamed(topk_ids=lambda _: ids, topk_logprobs=lambda _: logprobs)(row)
    write(tmp_path, row)
    assert [each.topk for each in recorded(tmp_path).rows] == [k > 0]


@pytest.mark.parametrize(
    ("versions", "oldest", "newest"),
    [
        ([3, 3, 4, 4, 4, 9, 9, 9], 3, 9),
        ([9, 3, 3, 3, 3, 3, 3, 4], 3, 9),
        ([-1, 3, 4, 4, 4, 9, 9, 9], -1, 9),
        ([-1] * 8, -1, -1),
        ([0] * 8, 0, 0),
    ],
)
def test_the_versions_of_a_row_are_those_of_its_sampled_tokens(
    tmp_path: Path, versions: list[int], oldest: int, newest: int
) -> None:
    def of(array: Any) -> Any:
        new = np.full_like(array, -1)
        new[trajectory().episode.stream.loss_mask] = versions
        return new

    write(tmp_path, streamed(weight_version=of)(trajectory("a__000")))
    found = recorded(tmp_path)
    assert [(row.oldest, row.newest) for row in found.rows] == [(oldest, newest)]
    assert found.version == newest


def test_the_newest_version_of_all_rows_is_that_of_the_whole(store: Path) -> None:
    newer = streamed(weight_version=lambda array: np.where(array >= 0, 11, -1).astype(np.int32))
    write(store, newer(trajectory("c__000")), trajectory("c__001"))
    assert recorded(store).version == 11


def test_an_episode_that_sampled_nothing_is_a_row_of_no_version(tmp_path: Path) -> None:
    row = trajectory("a__000")
    prompt = replace(row.episode.stream.segments[0], stop=18)
    silent = streamed(
        loss_mask=np.zeros_like,
        logprobs=lambda array: np.full_like(array, np.nan),
        weight_version=lambda array: np.full_like(array, -1),
        segments=lambda _: (prompt,),
    )(row)
    used = replace(row.episode.used, turns=0, sampled_tokens=0)
    episode = replace(silent.episode, requests=(), used=used)
    write(tmp_path, replace(silent, episode=episode))
    (found,) = recorded(tmp_path).rows
    assert (found.tokens, found.trained, found.oldest, found.newest) == (18, 0, -1, -1)


def test_it_is_told_how_many_rows_are_read_and_of_how_many(store: Path) -> None:
    heard: list[tuple[int, int]] = []
    recorded(store, told=lambda *each: heard.append(each))
    assert heard == [(number, 5) for number in range(1, 6)]


def test_a_file_that_is_damaged_as_a_whole_is_not_told_of_as_a_row(store: Path) -> None:
    file = write(store, trajectory("c__000"))
    file.write_bytes(file.read_bytes() + b"and more")
    heard: list[tuple[int, int]] = []
    found = recorded(store, told=lambda *each: heard.append(each))
    assert heard == [(number, 6) for number in range(1, 7)]
    assert len(found.damaged) == 1
    assert len(found.rows) == 6


# --- what is left out -----------------------------------------------------------------------------


def test_a_damaged_row_is_named_and_costs_no_other(store: Path) -> None:
    (file,) = segment_files(store)
    spoil(file, "a__000")
    found = recorded(store)
    assert grouped(found) == {"b": ["b__000", "b__001", "b__002"], "a": ["a__001"]}
    (line,) = found.damaged
    assert line.startswith(f"{file}: trajectory 'a__000': ")
    assert "\n" not in line


def test_a_row_that_is_damaged_after_it_was_read_is_not_trained_on(store: Path) -> None:
    found = recorded(store)
    (file,) = segment_files(store)
    spoil(file, "a__001")
    b, a = found.groups
    assert len(found.samples([b])) == 3
    with pytest.raises(Damaged, match="a__001"):
        found.samples([a])


def test_episodes_of_an_evaluation_are_left_out_and_counted(store: Path) -> None:
    write(store, *(evaluation(trajectory(f"a__{number:03}")) for number in range(5, 8)))
    found = recorded(store)
    assert found.evaluations == 3
    assert grouped(found) == {"b": ["b__000", "b__001", "b__002"], "a": ["a__000", "a__001"]}


def test_an_evaluation_may_be_of_a_distribution_that_no_trainer_makes(store: Path) -> None:
    write(store, evaluation(trajectory("c__000", Sampling(temperature=0.0))))
    assert recorded(store).evaluations == 1


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["envkit.trajectory/2.0", "envkit.trajectory/0.9"])
def test_another_major_version_is_refused_with_both_named(store: Path, version: str) -> None:
    file = versioned(store, trajectory("c__000"), version)
    with pytest.raises(OtherSchema) as refused:
        recorded(store)
    line = f"{file}: schema is '{version}', this version reads 'envkit.trajectory/1.0';"
    assert str(refused.value) == f"{line} read it with an envkit that does"


def test_another_minor_version_is_read(store: Path) -> None:
    versioned(store, trajectory("c__000"), "envkit.trajectory/1.7")
    assert len(recorded(store).rows) == 6


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (Sampling(top_p=0.9), "c__000: was sampled with top_p 0.9"),
        (Sampling(temperature=0.0), "c__000: temperature 0 leaves no choice"),
        (Sampling(temperature=0.7), "c__000: log-probs are of temperature 1, and 0.7"),
    ],
)
def test_a_row_of_another_distribution_is_refused(
    store: Path, sampling: Sampling, said: str
) -> None:
    write(store, trajectory("c__000", sampling))
    assert _refused(store).startswith(said)


def test_a_row_of_another_tokenizer_is_refused_with_both_digests(store: Path) -> None:
    theirs, mine = (hashlib.sha256(each).hexdigest() for each in (b"theirs", b"mine"))
    write(store, identified(tokenizer_digest=mine)(trajectory("c__000")))
    assert len(recorded(store, mine).rows) == 6  # of the others nobody knows
    write(store, identified(tokenizer_digest=theirs)(trajectory("c__001")))
    said = f"c__001: its ids are of tokenizer {theirs[:12]}, the policy's is {mine[:12]}; "
    assert _refused(store, mine).startswith(said)
    assert len(recorded(store).rows) == 7  # where the policy's own is not known


def test_the_digest_of_a_policys_tokenizer_is_that_of_its_file(tmp_path: Path) -> None:
    assert tokenizer_digest(tmp_path) == ""
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    assert tokenizer_digest(tmp_path) == hashlib.sha256(b"{}").hexdigest()


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    said = f"{tmp_path}: holds no trajectories; name a store, or the directory of an envkit run"
    assert _refused(tmp_path) == said


@pytest.mark.parametrize("line", ["No such file or directory", "Not a directory"])
def test_what_is_no_directory_is_refused_by_its_name(tmp_path: Path, line: str) -> None:
    place = tmp_path / "place"
    if line == "Not a directory":
        place.write_text("text", "utf-8")
    assert _refused(place) == f"{place}: {line}; name a store, or the directory of an envkit run"


def test_a_store_of_evaluations_alone_is_refused_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, evaluation(trajectory("a__000")))
    said = f"{tmp_path}: no trajectory in it can be trained on; they are all of an evaluation"
    assert _refused(tmp_path) == said


def test_a_store_of_damaged_rows_alone_is_refused_with_the_first(tmp_path: Path) -> None:
    spoil(write(tmp_path, trajectory("a__000")), "a__000")
    assert "can be trained on; " in _refused(tmp_path)
    assert "trajectory 'a__000': " in _refused(tmp_path)


# --- the digest of the data -----------------------------------------------------------------------


def test_the_digest_does_not_depend_on_files(store: Path, tmp_path: Path) -> None:
    for row in ROWS:
        write(tmp_path / "apart", row)
    assert len(segment_files(tmp_path / "apart")) == len(ROWS)
    assert recorded(tmp_path / "apart").digest == recorded(store).digest
    compact(tmp_path / "apart")
    assert len(segment_files(tmp_path / "apart")) == 1
    assert recorded(tmp_path / "apart").digest == recorded(store).digest


def test_the_digest_does_not_depend_on_the_order(store: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", *reversed(ROWS))
    assert recorded(tmp_path / "other").digest == recorded(store).digest


def test_evaluations_do_not_change_the_digest(store: Path) -> None:
    before = recorded(store).digest
    write(store, evaluation(trajectory("c__000")))
    assert recorded(store).digest == before


def reread(array: Any) -> Any:
    new = array.copy()
    new[-1] += 1
    return new


@pytest.mark.parametrize(
    "change",
    [
        worth(reward=0.25),
        worth(reward=0.0),
        worth(loss_live=False),
        worth(reward_valid=False, loss_live=False),
        worth(reward=None, verdict="no_verdict", reward_valid=False, loss_live=False),
        identified(group_id="b"),
        identified(trajectory_id="a__009"),
        identified(sampling=Sampling(temperature=0.5, logprobs_mode="processed")),
        streamed(token_ids=reread),
        streamed(logprobs=lambda array: array * np.float32(0.5)),
    ],
    ids=("reward zero stale invalid no-verdict group name temperature ids logprobs".split()),
)
def test_the_digest_depends_on_every_row(store: Path, tmp_path: Path, change: Change) -> None:
    changed = [change(row) if row.identity.trajectory_id == "a__001" else row for row in ROWS]
    write(tmp_path / "other", *changed)
    assert recorded(tmp_path / "other").digest != recorded(store).digest


def test_a_stale_row_and_one_that_is_not_valid_are_not_the_same(tmp_path: Path) -> None:
    digests: set[str] = set()
    for name, valid in (("stale", True), ("invalid", False)):
        write(tmp_path / name, worth(loss_live=False, reward_valid=valid)(ROWS[0]))
        digests.add(recorded(tmp_path / name).digest)
    assert len(digests) == 2


def test_a_row_more_or_less_is_another_digest(store: Path, tmp_path: Path) -> None:
    write(tmp_path / "less", *ROWS[:-1])
    before = recorded(store).digest
    assert recorded(tmp_path / "less").digest != before
    write(store, trajectory("c__000"))
    assert recorded(store).digest != before


def _refused(directory: Path, tokenizer: str = "") -> str:
    with pytest.raises(Refused) as refused:
        recorded(directory, tokenizer)
    assert "\n" not in str(refused.value)
    return str(refused.value)
