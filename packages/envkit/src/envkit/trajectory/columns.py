# SPDX-License-Identifier: Apache-2.0
"""A trajectory as one row of Arrow columns.

Contract: `decode` undoes `encode` to the bit. The columns are: id, reward and whether it counts;
``segments``; the token columns, each a list of one entry a token (alternatives: k a token, one
after the other, and no column where none were asked for); ``facts``, everything but the stream as
JSON text; and ``checksum``. Facts are one column because a batch costs by the column, about 2 us
each, and a row has a hundred of them. A column that a reader does not know is passed over, and so
is a field; one that is missing gets its default.

``checksum`` is the CRC-32 of the body of the row's message, uncompressed and without this column,
of the batch as it lies in the file: what copies it may leave other bits behind its bitmaps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import orjson

from envkit.trajectory.arrow import Array, Batch, pa
from envkit.trajectory.crc import crc32
from envkit.trajectory.head import Head, head_of
from envkit.trajectory.plain import from_plain, rows_of, to_columns, to_plain
from envkit.trajectory.types import Episode, Identity, Outcome, Segment, Stream, Trajectory

CHECKSUM: Final = "checksum"

_TEXT, _NUMBER, _BOOL = pa.string(), pa.float64(), pa.bool_()
_HEAD: Final = {
    "trajectory_id": _TEXT,
    "reward": _NUMBER,
    "reward_valid": _BOOL,
    "loss_live": _BOOL,
}
_SEGMENTS: Final = pa.list_(
    pa.struct(
        [
            ("kind", _TEXT),
            ("start", pa.int32()),
            ("stop", pa.int32()),
            ("turn", pa.int32()),
            ("finish", _TEXT),
        ]
    )
)
_TOKENS: Final = {
    "token_ids": pa.int32(),
    "loss_mask": _BOOL,
    "logprobs": pa.float32(),
    "weight_version": pa.int32(),
    "topk_ids": pa.int32(),
    "topk_logprobs": pa.float32(),
}
_RECORDS: Final = ("requests", "calls", "parse_faults")
_APART: Final = ("stream", *_RECORDS)
_TOPK: Final = ("topk_ids", "topk_logprobs")


def encode(trajectory: Trajectory) -> Batch:
    """A row that keeps the invariants, as a batch of one."""
    head, stream = to_plain(head_of(trajectory)), trajectory.episode.stream
    facts = orjson.dumps(_facts(trajectory)).decode()
    columns = {name: pa.array([head[name]], kind) for name, kind in _HEAD.items()}
    columns["facts"] = pa.array([facts], _TEXT)
    columns["segments"] = pa.array([to_plain(stream.segments)], _SEGMENTS)
    tokens = {name: (getattr(stream, name), kind) for name, kind in _TOKENS.items()}
    columns |= {name: _list(*each) for name, each in tokens.items() if each[0] is not None}
    batch = pa.RecordBatch.from_pydict(columns)
    return batch.append_column(CHECKSUM, pa.array([checksum(batch)], pa.uint32()))


def decode(batch: Batch) -> Trajectory:
    """The row of a batch.

    Raises:
        TypeError: a field that has no default is missing.
        ValueError: what stands in the columns is no trajectory.
    """
    facts = orjson.loads(batch.column("facts")[0].as_py())
    identity = from_plain(Identity, facts["identity"])
    stream = decode_stream(batch, identity.sampling.top_logprobs)
    trajectory = Trajectory(
        identity=identity,
        episode=from_plain(Episode, {**facts["episode"], "stream": stream}),
        outcome=from_plain(Outcome, facts["outcome"]),
    )
    _compare(head_of(trajectory), batch)
    return trajectory


def decode_stream(batch: Batch, topk: int = 0) -> Stream:
    """The token stream of a batch's row, and nothing else of it; arrays are read-only.

    ``topk`` is how many alternatives a token has; they are left out where it is 0.

    Raises:
        TypeError: a column is missing.
    """
    columns = {name: _values(batch, name) for name in _TOKENS}
    for name in _TOPK:
        wanted = topk and columns[name] is not None
        columns[name] = columns[name].reshape(-1, topk) if wanted else None
    missing = [name for name, each in columns.items() if each is None and name not in _TOPK]
    if missing:
        raise TypeError(f"missing columns: {', '.join(missing)}")
    return Stream(segments=_segments(batch), **columns)


def checksum(batch: Batch) -> int:
    """CRC-32 of a batch's uncompressed body, the checksum's column left out."""
    rest = batch.drop_columns([CHECKSUM]) if CHECKSUM in batch.schema.names else batch
    message = memoryview(rest.serialize())
    header = 8 + int.from_bytes(message[4:8], "little")
    return crc32(message[header:])


def _facts(trajectory: Trajectory) -> dict[str, Any]:
    episode = trajectory.episode
    names = (name for name in Episode.__slots__ if name not in _APART)
    plain = {name: to_plain(getattr(episode, name)) for name in names}
    records = {name: to_columns(getattr(episode, name)) for name in _RECORDS}
    return {
        "identity": to_plain(trajectory.identity),
        "episode": {**plain, **records},
        "outcome": to_plain(trajectory.outcome),
    }


def _compare(head: Head, batch: Batch) -> None:
    """The columns that rows are chosen by say the same as the facts."""
    for name in _HEAD:
        expected = getattr(head, name)
        if name in batch.schema.names and batch.column(name)[0].as_py() != expected:
            raise ValueError(f"column {name} is not the {expected!r} of the facts")


def _segments(batch: Batch) -> tuple[Segment, ...]:
    inner = batch.column("segments").flatten()
    names = [name for name in Segment.__slots__ if inner.type.get_field_index(name) >= 0]
    return rows_of(Segment, {name: inner.field(name).to_pylist() for name in names})


def _list(values: Any, kind: Any) -> Array:
    """A column of one list."""
    array = pa.array(values.reshape(-1), kind, from_pandas=False)
    return pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array)


def _values(batch: Batch, name: str) -> Any:
    """The entries of a column of one list; None where it is null or missing."""
    if name not in batch.schema.names or batch.column(name).null_count:
        return None
    values = batch.column(name).flatten()
    if values.type != pa.bool_():
        return values.to_numpy(zero_copy_only=True)
    array = np.asarray(values.to_numpy(zero_copy_only=False), np.bool_)
    array.flags.writeable = False
    return array
