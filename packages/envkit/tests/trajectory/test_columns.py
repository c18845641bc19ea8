# SPDX-License-Identifier: Apache-2.0
"""A row survives Arrow and the episode file to the bit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from envkit.trajectory.columns import checksum, decode, encode
from envkit.trajectory.episode_file import (
    decode_episode,
    encode_episode,
    read_episode,
    write_episode,
)
from envkit.trajectory.errors import BrokenInvariant, Damaged, OtherSchema
from envkit.trajectory.types import Identity, Limits, Trajectory

from .rows import same, trajectories, trajectory, with_stream


@settings(deadline=None)  # other work on this machine slows single examples
@given(trajectories())
def test_a_row_survives_arrow(row: Trajectory) -> None:
    assert same(decode(encode(row)), row)


@settings(deadline=None)  # other work on this machine slows single examples
@given(trajectories())
def test_an_episode_survives_its_file(row: Trajectory) -> None:
    identity, episode = decode_episode(encode_episode(row.identity, row.episode))
    assert same(identity, row.identity)
    assert same(episode, row.episode)


def test_what_was_read_cannot_be_written_into() -> None:
    stream = decode(encode(trajectory())).episode.stream
    for array in (stream.token_ids, stream.loss_mask, stream.logprobs, stream.weight_version):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def with_facts(batch: pa.RecordBatch, change: Callable[[Any], object]) -> pa.RecordBatch:
    facts = json.loads(batch.column("facts")[0].as_py())
    change(facts)
    place = batch.schema.names.index("facts")
    return batch.set_column(place, "facts", pa.array([json.dumps(facts)]))


def test_what_a_later_minor_added_is_passed_over() -> None:
    def add(facts: Any) -> None:
        facts["mood"] = "good"
        facts["episode"]["mood"] = "good"
        facts["episode"]["requests"]["mood"] = ["good", "bad", "good"]

    batch = with_facts(encode(trajectory()), add).append_column("mood", pa.array(["good"]))
    assert same(decode(batch), trajectory())


def test_what_an_earlier_minor_did_not_have_gets_its_default() -> None:
    def take_away(facts: Any) -> None:
        del facts["episode"]["evaluation"], facts["episode"]["parse_faults"]
        del facts["identity"]["template_family"], facts["episode"]["requests"]["tries"]

    batch = with_facts(encode(trajectory()), take_away)
    batch = batch.drop_columns(["loss_live"])
    assert same(decode(batch), trajectory())


def test_records_are_read_that_were_written_one_by_one() -> None:
    def one_by_one(facts: Any) -> None:
        for name in ("requests", "calls", "parse_faults"):
            columns = facts["episode"][name]
            rows = zip(*columns.values(), strict=True)
            facts["episode"][name] = [dict(zip(columns, row, strict=True)) for row in rows]

    assert same(decode(with_facts(encode(trajectory()), one_by_one)), trajectory())


def test_a_field_without_a_default_must_be_there() -> None:
    with pytest.raises(TypeError, match="limits"):
        decode(with_facts(encode(trajectory()), lambda facts: facts["episode"].pop("limits")))
    with pytest.raises(TypeError, match="logprobs"):
        decode(encode(trajectory()).drop_columns(["logprobs"]))


def test_columns_that_rows_are_chosen_by_cannot_say_otherwise_than_the_facts() -> None:
    batch = encode(trajectory())
    place = batch.schema.names.index("reward_valid")
    with pytest.raises(ValueError, match="reward_valid is not the True of the facts"):
        decode(batch.set_column(place, "reward_valid", pa.array([False])))


def test_the_checksum_is_of_the_values_and_not_of_how_they_were_compressed() -> None:
    batch = encode(trajectory())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as out:
        out.write_batch(batch)
    (again,) = pa.ipc.open_stream(sink.getvalue())
    assert checksum(again) == batch.column("checksum")[0].as_py()
    assert checksum(encode(trajectory(seed=1))) != checksum(batch)


def test_every_byte_of_an_episode_file_is_guarded() -> None:
    row = trajectory(turns=2)
    data = encode_episode(row.identity, row.episode)
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 0x10
        with pytest.raises(Damaged):
            decode_episode(bytes(flipped))


@pytest.mark.parametrize("length", [0, 7, 12, 100, -1])
def test_an_episode_file_that_is_cut_off_is_named(tmp_path: Path, length: int) -> None:
    row, path = trajectory(), tmp_path / "episode.bin"
    write_episode(path, row.identity, row.episode)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(Damaged, match=r"episode\.bin"):
        read_episode(path)


def test_an_episode_of_another_major_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = trajectory()
    monkeypatch.setattr("envkit.trajectory.episode_file.SCHEMA", "envkit.episode/2")
    data = encode_episode(row.identity, row.episode)
    monkeypatch.undo()
    with pytest.raises(OtherSchema, match=r"'envkit\.episode/2'.*'envkit\.episode/1'"):
        decode_episode(data)


def test_an_episode_that_is_none_is_not_written(tmp_path: Path) -> None:
    row = trajectory()
    row = with_stream(row, token_ids=row.episode.stream.token_ids[1:])
    with pytest.raises(BrokenInvariant):
        write_episode(tmp_path / "episode.bin", row.identity, row.episode)
    assert not list(tmp_path.iterdir())


def test_an_episode_may_be_written_before_it_has_an_id(tmp_path: Path) -> None:
    row, path = trajectory(), tmp_path / "episode.bin"
    write_episode(path, Identity(trajectory_id="", group_id="", sample=0, task=""), row.episode)
    assert same(read_episode(path)[1].limits, Limits())
