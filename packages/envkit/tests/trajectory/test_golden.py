# SPDX-License-Identifier: Apache-2.0
"""Stores that were written once and are kept: what an older or a later envkit wrote stays read."""

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from envkit.trajectory.columns import encode
from envkit.trajectory.errors import Damaged, OtherSchema
from envkit.trajectory.segment import Place, Row, encode_segment, read_row, read_segment
from envkit.trajectory.store import Store, verify_row

from .rows import trajectory

GOLDEN = Path(__file__).parent / "golden"
NOW, LATER, OTHER = "1.0", "1.9", "2.0"
TOLD = [json.loads(line) for line in (GOLDEN / "rows.jsonl").read_text("utf-8").splitlines()]
BY_ID: Mapping[str, Any] = {each["identity"]["trajectory_id"]: each for each in TOLD}
TYPES = {
    "token_ids": np.int32,
    "loss_mask": np.bool_,
    "logprobs": np.float32,
    "weight_version": np.int32,
    "topk_ids": np.int32,
    "topk_logprobs": np.float32,
}


def differences(told: Any, found: Any, where: str) -> Iterator[str]:
    """Where a record is not what was told of it; fields that nothing was told of may hold any."""
    match told:
        case dict() if isinstance(found, dict):
            yield from () if told == found else [f"{where}: {found} is not {told}"]
        case dict():
            for name, value in told.items():
                yield from differences(value, getattr(found, name), f"{where}.{name}")
        case list() if isinstance(found, np.ndarray):
            same = np.array_equal(np.array(told, found.dtype), found, equal_nan=True)
            yield from () if same else [f"{where}: {found} is not {told}"]
        case list():
            assert len(told) == len(found), where
            for number, pair in enumerate(zip(told, found, strict=True)):
                yield from differences(*pair, f"{where}[{number}]")
        case _:
            plain = found.value if isinstance(found, Enum) else found
            same = type(told) is type(plain) and told == plain
            yield from () if same else [f"{where}: {plain!r} is not {told!r}"]


def places(version: str) -> list[Place]:
    return [place for each in Store(GOLDEN / version).segments for place in each.places]


def test_the_rows_are_of_every_kind_that_a_trainer_must_tell_apart() -> None:
    stops = "final fault fault fault turn_cap length context"
    assert [row["episode"]["stop"] for row in TOLD] == stops.split()
    owners = [(row["outcome"]["fault"] or {"owner": "-"})["owner"] for row in TOLD]
    assert owners == "- model sandbox sandbox - - -".split()
    assert [row["episode"]["evaluation"] for row in TOLD].index(True) == 4
    first, last = TOLD[0]["episode"]["stream"], TOLD[-1]["episode"]["stream"]
    turn = next(each for each in first["segments"] if each["kind"] == "model")
    assert len({*first["weight_version"][turn["start"] : turn["stop"]]}) == 2
    assert len(last["topk_ids"][0]) == 2


@pytest.mark.parametrize(("version", "count"), [(NOW, 7), (LATER, 3)])
def test_every_value_is_the_one_that_was_written(version: str, count: int) -> None:
    store = Store(GOLDEN / version)
    assert store.damage == ()
    read = list(store)
    assert len(read) == count
    for row in read:
        name = row.identity.trajectory_id
        assert list(differences(BY_ID[name], row, name)) == []
        arrays = {each: getattr(row.episode.stream, each) for each in TYPES}
        assert all(each is None or each.dtype == TYPES[n] for n, each in arrays.items())


@pytest.mark.parametrize("version", [NOW, LATER])
def test_heads_say_what_the_rows_say(version: str) -> None:
    for head in Store(GOLDEN / version).heads:
        told = BY_ID[head.trajectory_id]
        fault = told["outcome"]["fault"] or {"code": "", "owner": ""}
        assert (head.group_id, head.sample) == tuple(
            told["identity"][name] for name in ("group_id", "sample")
        )
        assert (head.reward, head.reward_valid, head.loss_live) == tuple(
            told["outcome"][name] for name in ("reward", "reward_valid", "loss_live")
        )
        assert (head.fault, head.fault_owner) == (fault["code"], fault["owner"])
        assert head.stop == told["episode"]["stop"]
        assert head.tokens == len(told["episode"]["stream"]["token_ids"])


@pytest.mark.parametrize("version", [NOW, LATER])
def test_checksums_hold_over_all_columns_those_that_are_not_known_too(version: str) -> None:
    for place in places(version):
        assert verify_row(place).identity.trajectory_id == place.trajectory_id


# --- a later minor --------------------------------------------------------------------------------


def test_the_later_minor_has_a_column_and_keys_that_ours_has_not() -> None:
    ours = encode(trajectory()).schema.names
    for place in places(LATER):
        batch = read_row(place)
        assert {*batch.schema.names} - {*ours} == {"doubts"}
        assert batch.schema.field("segments").type.value_type.get_field_index("mood") == 0
        facts = json.loads(batch.column("facts")[0].as_py())
        moody = [facts, *facts.values(), *_records(facts)]
        assert all("mood" in each for each in moody if isinstance(each, dict) and each)
        assert "mood" in place.rows.heads
    assert {each.version for each in Store(GOLDEN / LATER).segments} == {"envkit.trajectory/1.9"}


def _records(facts: Any) -> Iterator[Any]:
    yield from (facts["identity"][name] for name in ("engine", "sampling"))
    yield from (facts["episode"][name] for name in ("limits", "used", "requests", "parse_faults"))
    yield from (facts["episode"]["calls"], facts["outcome"]["fault"], *facts["outcome"]["attempts"])


def test_a_changed_value_of_an_unknown_column_does_not_match_the_checksum(tmp_path: Path) -> None:
    place = places(LATER)[0]
    batch = read_row(place)
    where = batch.schema.get_field_index("doubts")
    doubts = pa.array([[0.25] * len(batch.column("token_ids")[0])], batch.schema.types[where])
    changed = batch.set_column(where, batch.schema.field(where), doubts)
    file = tmp_path / "segment-00000001.arrow"
    row = Row(head=place.head, checksum=place.checksum, batch=changed)
    file.write_bytes(encode_segment([row], "envkit.trajectory/1.9"))
    (spoiled,) = read_segment(file).places
    with pytest.raises(Damaged, match="its values are not the ones that were written"):
        verify_row(spoiled)


# --- another major --------------------------------------------------------------------------------


def test_another_major_is_refused_by_file_and_both_versions() -> None:
    with pytest.raises(OtherSchema) as refused:
        Store(GOLDEN / OTHER)
    assert str(refused.value) == (
        f"{GOLDEN / OTHER / 'segment-00000001.arrow'}: schema is 'envkit.trajectory/2.0', this"
        " version reads 'envkit.trajectory/1.0'; read it with an envkit that does"
    )
