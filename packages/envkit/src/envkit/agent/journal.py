# SPDX-License-Identifier: Apache-2.0
"""What an episode has come to, kept on the disk as it goes on, so that a killed one can go on.

Contract: a turn is on the disk as it was sampled before any of its calls is carried out, each call
before it is, and the sha256 of what the model was shown of their results before the next turn. Of a
file that was cut off at any byte, what came before is read, and nothing else; one whose bytes are
not those that were written is refused. Made of numpy and JSON alone, as `episode_file` is.

Its bytes: a magic, then records: the length of a record, the CRC-32 of that, the record's own
CRC-32, the record. A record: the length of its header, the header in JSON, the arrays it names one
after the other, little-endian.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np
import orjson

from envkit.agent.history import fingerprint
from envkit.agent.stream import digest
from envkit.agent.types import CallRequest, Sampled
from envkit.durable import sync_directory, sync_file
from envkit.trajectory.errors import Damaged
from envkit.trajectory.plain import to_plain
from envkit.trajectory.types import Sampling

JOURNAL_NAME: Final = "turns.journal"
"""Its name in the agent's directory of a trial."""
_MAGIC: Final = b"ENVKITJ1"
_FRAME: Final = struct.Struct("<III")
_LENGTH: Final = struct.Struct("<I")
_ARRAYS: Final = {
    "token_ids": "<i4",
    "logprobs": "<f4",
    "weight_version": "<i4",
    "topk_ids": "<i4",
    "topk_logprobs": "<f4",
}
_SCALARS: Final = (
    *("finish", "prompt_tokens", "queued_s", "first_token_s", "seconds", "kv_version", "tries"),
)


class Diary(Protocol):
    """Who is told of an episode as it goes on; what it raises ends the episode."""

    def begun(self, prompt: Sequence[int], sampling: Sampling) -> None:
        """It has its prompt."""
        ...

    def sampled(self, turn: int, sampled: Sampled) -> None:
        """A turn was sampled, and nothing was done of what it says."""
        ...

    def intends(self, turn: int, call: CallRequest) -> None:
        """A call is about to be carried out."""
        ...

    def observed(self, turn: int, sha256: str) -> None:
        """What follows a turn is known; ``sha256`` is of its ids."""
        ...


class NoDiary:
    """Nobody is told."""

    def begun(self, prompt: Sequence[int], sampling: Sampling) -> None: ...
    def sampled(self, turn: int, sampled: Sampled) -> None: ...
    def intends(self, turn: int, call: CallRequest) -> None: ...
    def observed(self, turn: int, sha256: str) -> None: ...


class Journal:
    """A diary in a file."""

    def __init__(self, fd: int) -> None:
        """Of a file that is empty but for its magic: use `create`."""
        self._fd = fd

    @classmethod
    def create(cls, path: Path) -> Self:
        """Begin one. Raises OSError, also where there is one already."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        os.write(fd, _MAGIC)
        sync_directory(path.parent)
        return cls(fd)

    def begun(self, prompt: Sequence[int], sampling: Sampling) -> None:
        """See `Diary`."""
        self._add({"kind": "begun", "prompt": digest(prompt), "sampling": to_plain(sampling)})

    def sampled(self, turn: int, sampled: Sampled) -> None:
        """See `Diary`."""
        arrays = {name: getattr(sampled, name) for name in _ARRAYS}
        scalars = {name: getattr(sampled, name) for name in _SCALARS}
        there = {name: each for name, each in arrays.items() if each is not None}
        self._add({"kind": "sampled", "turn": turn, "sampled": scalars}, there)

    def intends(self, turn: int, call: CallRequest) -> None:
        """See `Diary`."""
        named = {"call_id": call.call_id, "fingerprint": fingerprint(call)}
        self._add({"kind": "intends", "turn": turn, **named})

    def observed(self, turn: int, sha256: str) -> None:
        """See `Diary`."""
        self._add({"kind": "observed", "turn": turn, "sha256": sha256})

    def close(self) -> None:
        """Nothing more is kept."""
        os.close(self._fd)

    def _add(self, header: dict[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> None:
        """On the disk when this returns. Raises OSError."""
        data = memoryview(record(header, arrays or {}))
        while data:
            data = data[os.write(self._fd, data) :]
        sync_file(self._fd)


@dataclass(slots=True, kw_only=True)
class PastTurn:
    """A turn that is in a journal."""

    sampled: Sampled
    intended: list[str] = field(default_factory=list[str])
    """Ids of its calls that were begun."""
    observed: str = ""
    """sha256 of what followed it; empty where nothing had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a journal holds."""

    prompt: str = ""
    """sha256 of its ids; empty where the episode had none yet."""
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    turns: tuple[PastTurn, ...] = ()

    @property
    def tokens(self) -> int:
        """How long the stream was after its last turn."""
        last = self.turns[-1].sampled if self.turns else None
        return last.prompt_tokens + len(last.token_ids) if last else 0

    @property
    def unknown(self) -> str:
        """Why nobody can go on from here; empty where one can."""
        if self.turns and self.turns[-1].intended and not self.turns[-1].observed:
            turn, call = len(self.turns) - 1, self.turns[-1].intended[-1]
            return f"turn {turn}: nobody knows what {call} came to, which was begun"
        return ""


def read_journal(path: Path) -> Past:
    """What was kept before a kill.

    Raises:
        OSError: there is none.
        Damaged: its bytes are not the ones that were written.
    """
    where, past, turns = str(path), Past(), list[PastTurn]()
    for header, arrays in records(path.read_bytes(), where):
        try:
            past = _taken(past, turns, header, arrays)
        except (KeyError, TypeError, IndexError) as error:
            raise Damaged(where, "", f"holds a record that means nothing: {error!r}") from error
    return Past(prompt=past.prompt, sampling=past.sampling, turns=tuple(turns))


def _taken(
    past: Past, turns: list[PastTurn], header: dict[str, Any], arrays: dict[str, Any]
) -> Past:
    match header["kind"]:
        case "begun":
            return Past(prompt=header["prompt"], sampling=header["sampling"])
        case "sampled" if header["turn"] == len(turns):
            turns.append(PastTurn(sampled=Sampled(**header["sampled"], **arrays)))
        case "intends" if header["turn"] == len(turns) - 1:
            turns[-1].intended.append(header["call_id"])
        case "observed" if header["turn"] == len(turns) - 1:
            turns[-1].observed = header["sha256"]
        case kind:
            raise KeyError(f"{kind} of turn {header.get('turn')} after {len(turns)}")
    return past


def record(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of one record."""
    shapes = {name: each.shape for name, each in arrays.items()}
    text = orjson.dumps({**header, "arrays": shapes})
    flat = [each.astype(_ARRAYS[name]).tobytes() for name, each in arrays.items()]
    body = b"".join((_LENGTH.pack(len(text)), text, *flat))
    length = _LENGTH.pack(len(body))
    return _FRAME.pack(len(body), zlib.crc32(length), zlib.crc32(body)) + body


def records(data: bytes, where: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Headers and arrays, up to where the file was cut off. Raises Damaged."""
    if data[: len(_MAGIC)] != _MAGIC[: len(data)]:
        raise Damaged(where, "", "is no journal")
    at = len(_MAGIC)
    while len(data) - at >= _FRAME.size:
        length, of_length, of_body = _FRAME.unpack_from(data, at)
        if zlib.crc32(_LENGTH.pack(length)) != of_length:
            if not any(data[at:]):
                return  # the disk had room for it, and nothing of it
            raise Damaged(where, "", f"holds bytes at {at} that were not written")
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        at += _FRAME.size + length
        if at > len(data):
            return
        if zlib.crc32(body) != of_body:
            if at == len(data):
                return
            raise Damaged(where, "", f"holds bytes before {at} that were not written")
        yield _decoded(body)


def _decoded(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    (length,) = _LENGTH.unpack_from(body)
    start = _LENGTH.size + length
    header: dict[str, Any] = orjson.loads(body[_LENGTH.size : start])
    arrays = dict[str, Any]()
    for name, shape in header.pop("arrays").items():
        flat = np.frombuffer(body, _ARRAYS[name], math.prod(shape), start)
        arrays[name] = flat.reshape(shape)
        start += flat.nbytes
    return header, arrays
