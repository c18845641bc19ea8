# SPDX-License-Identifier: Apache-2.0
"""A trajectory as one row of Arrow columns.

Contract: `decode` undoes `encode`. The columns are the fields of `Identity`, `Episode` and
`Outcome` by name, of the types of their annotations; the token stream is stored packed. A column
that a reader does not know is passed over; one that a file does not have gets its default.

``checksum`` is the CRC-32 of the body of the row's message, uncompressed and without this column:
any Arrow library can compute it again.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Final, TypeAliasType, Union, get_args, get_origin, get_type_hints

import numpy as np

from envkit.trajectory.arrow import Array, Batch, DataType, pa
from envkit.trajectory.packed import Packed, pack, unpack
from envkit.trajectory.plain import from_plain, to_plain
from envkit.trajectory.types import Episode, Identity, Outcome, Segment, Stream, Trajectory

CHECKSUM: Final = "checksum"
_SCALARS: Final[dict[Any, Any]] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}
_RUN: Final = pa.struct([("start", pa.int32()), ("version", pa.int32())])


def encode(trajectory: Trajectory) -> Batch:
    """A row that keeps the invariants, as a batch of one."""
    packed = pack(trajectory.episode.stream)
    plain: dict[str, Any] = {
        **to_plain(trajectory.identity),
        **to_plain(trajectory.outcome),
        **_without_stream(trajectory.episode),
        "segments": to_plain(packed.segments),
        "tokens": len(packed.token_ids),
    }
    columns = {name: pa.array([plain[name]], kind) for name, kind in facts().items()}
    columns |= _token_columns(packed)
    batch = pa.RecordBatch.from_pydict(columns)
    return batch.append_column(CHECKSUM, pa.array([checksum(batch)], pa.uint32()))


def decode(batch: Batch) -> Trajectory:
    """The row of a batch.

    Raises:
        TypeError: a column that has no default is missing.
        ValueError: what stands in the columns is no trajectory.
    """
    known = [name for name in facts() if name in batch.schema.names]
    plain = batch.select(known).to_pylist()[0]
    identity = from_plain(Identity, plain)
    stream = decode_stream(batch, identity.sampling.top_logprobs)
    return Trajectory(
        identity=identity,
        episode=from_plain(Episode, {**plain, "stream": stream}),
        outcome=from_plain(Outcome, plain),
    )


def decode_stream(batch: Batch, topk: int) -> Stream:
    """The token stream of a batch's row, and nothing else of it."""
    runs = batch.column("weight_versions").flatten()
    segments = batch.column("segments").to_pylist()[0]
    packed = Packed(
        segments=tuple(from_plain(Segment, each) for each in segments),
        token_ids=_values(batch, "token_ids"),
        logprobs=_values(batch, "logprobs"),
        run_starts=runs.field("start").to_numpy(),
        run_versions=runs.field("version").to_numpy(),
        topk_ids=_values(batch, "topk_ids"),
        topk_logprobs=_values(batch, "topk_logprobs"),
    )
    return unpack(packed, topk=topk)


def checksum(batch: Batch) -> int:
    """CRC-32 of a batch's uncompressed body, the checksum's column left out."""
    rest = batch.drop_columns([CHECKSUM]) if CHECKSUM in batch.schema.names else batch
    message = memoryview(rest.serialize())
    header = 8 + int.from_bytes(message[4:8], "little")
    return zlib.crc32(message[header:])


# --- columns --------------------------------------------------------------------------------------


@cache
def facts() -> dict[str, DataType]:
    """Every column but those of tokens, with its type."""
    columns: dict[str, DataType] = {}
    for cls in (Identity, Outcome, Episode):
        hints = get_type_hints(cls)
        names = (each.name for each in fields(cls) if each.name != "stream")
        columns |= {name: _arrow(hints[name]) for name in names}
    return columns | {"segments": pa.list_(_arrow(Segment)), "tokens": pa.int64()}


def _arrow(hint: Any) -> DataType:
    if isinstance(hint, TypeAliasType):
        return _arrow(hint.__value__)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _arrow(inner[0])
    if origin is tuple:
        return pa.list_(_arrow(inner[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return pa.map_(_arrow(inner[0]), _arrow(inner[1]))
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return pa.struct([(each.name, _arrow(hints[each.name])) for each in fields(hint)])
    is_text = origin is not None or (isinstance(hint, type) and issubclass(hint, Enum))
    return pa.string() if is_text else _SCALARS[hint]


def _without_stream(episode: Episode) -> dict[str, Any]:
    names = (name for name in Episode.__slots__ if name != "stream")
    return {name: to_plain(getattr(episode, name)) for name in names}


def _token_columns(packed: Packed) -> dict[str, Array]:
    runs = pa.StructArray.from_arrays(
        [pa.array(packed.run_starts), pa.array(packed.run_versions)], fields=list(_RUN)
    )
    return {
        "weight_versions": _list(runs),
        "token_ids": _list(packed.token_ids),
        "logprobs": _list(packed.logprobs),
        "topk_ids": _list(packed.topk_ids, pa.int32()),
        "topk_logprobs": _list(packed.topk_logprobs, pa.float32()),
    }


def _list(values: Any, kind: DataType | None = None) -> Array:
    """A column of one list; null where there is none."""
    if values is None:
        return pa.nulls(1, pa.list_(kind))
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array)


def _values(batch: Batch, name: str) -> Any:
    """The entries of a column of one list, without a copy; None where it is null or missing."""
    if name not in batch.schema.names or batch.column(name).null_count:
        return None
    return np.asarray(batch.column(name).flatten().to_numpy(zero_copy_only=True))
