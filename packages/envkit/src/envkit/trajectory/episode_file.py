# SPDX-License-Identifier: Apache-2.0
"""An episode in a file of its own: how the trial's process leaves it for the store's writer.

Contract: what is read is what was written, or `Damaged`. The file is there whole or not at all,
and once `write_episode` has returned it stays. Made of numpy and JSON alone: pyarrow starts
threads where it is imported, and a trial's process is the fork of one that has none.

Its bytes: a magic, the length of the header, the header in JSON, the arrays it names one after
the other, little-endian, and the CRC-32 of all that.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from envkit.durable import write_durably
from envkit.trajectory.errors import Damaged, OtherSchema
from envkit.trajectory.invariants import check_episode, mask_of
from envkit.trajectory.plain import from_plain, to_plain
from envkit.trajectory.types import Episode, Identity, Segment, Stream

EPISODE_NAME: Final = "episode.bin"
"""Its name in the agent's directory of a trial."""

SCHEMA: Final = "envkit.episode/1"
_MAGIC: Final = b"ENVKITEP"
_ARRAYS: Final = {
    "token_ids": "<i4",
    "logprobs": "<f4",
    "weight_version": "<i4",
    "topk_ids": "<i4",
    "topk_logprobs": "<f4",
}


def write_episode(path: Path, identity: Identity, episode: Episode) -> None:
    """Leave an episode where the writer of the store looks for it.

    Of the identity only what the harness knows need be set.

    Raises:
        BrokenInvariant: the episode is not one.
        OSError: the file cannot be written.
    """
    check_episode(identity.trajectory_id, episode, identity.sampling)
    write_durably(path, encode_episode(identity, episode))


def read_episode(path: Path) -> tuple[Identity, Episode]:
    """Read back what `write_episode` left.

    Raises:
        OSError: there is no such file, or it cannot be read.
        Damaged: its bytes are not the ones that were written.
        OtherSchema: another major version wrote it.
        BrokenInvariant: the episode is not one.
    """
    identity, episode = decode_episode(path.read_bytes(), str(path))
    check_episode(identity.trajectory_id, episode, identity.sampling)
    return identity, episode


def encode_episode(identity: Identity, episode: Episode) -> bytes:
    """The bytes of an episode."""
    arrays = {name: getattr(episode.stream, name) for name in _ARRAYS}
    fields = {name: getattr(episode, name) for name in Episode.__slots__ if name != "stream"}
    header = {
        "schema": SCHEMA,
        "arrays": {name: each.shape for name, each in arrays.items() if each is not None},
        "identity": to_plain(identity),
        "episode": {name: to_plain(value) for name, value in fields.items()},
        "segments": to_plain(episode.stream.segments),
    }
    text = orjson.dumps(header)
    parts = [_MAGIC, struct.pack("<I", len(text)), text]
    parts += [each.astype(_ARRAYS[n]).tobytes() for n, each in arrays.items() if each is not None]
    body = b"".join(parts)
    return body + struct.pack("<I", zlib.crc32(body))


def decode_episode(data: bytes, where: str = "episode") -> tuple[Identity, Episode]:
    """Read back `encode_episode`; raises as `read_episode` does."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < len(_MAGIC) + 8:
        raise Damaged(where, "", "is no episode, or cut off")
    if zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise Damaged(where, "", "holds bytes that were not written: its checksum differs")
    (length,) = struct.unpack_from("<I", data, len(_MAGIC))
    start = len(_MAGIC) + 4 + length
    header: dict[str, Any] = orjson.loads(data[len(_MAGIC) + 4 : start])
    if header["schema"] != SCHEMA:
        raise OtherSchema(where, header["schema"], SCHEMA)
    identity = from_plain(Identity, header["identity"])
    arrays = _arrays(header["arrays"], data, start)
    segments = tuple(from_plain(Segment, each) for each in header["segments"])
    mask = mask_of(segments, len(arrays["token_ids"]))
    stream = Stream(segments=segments, loss_mask=mask, **arrays)
    return identity, from_plain(Episode, {**header["episode"], "stream": stream})


def _arrays(shapes: dict[str, list[int]], data: bytes, start: int) -> dict[str, Any]:
    arrays = dict[str, Any]()
    for name, shape in shapes.items():
        flat = np.frombuffer(data, _ARRAYS[name], math.prod(shape), start)
        arrays[name] = flat.reshape(shape)
        start += flat.nbytes
    return arrays
