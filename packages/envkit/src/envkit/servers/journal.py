# SPDX-License-Identifier: Apache-2.0
"""A call id is executed once: its intent is written before the work, its result after it.

JSON Lines, appended in one write each, so a killed gateway leaves at most one torn last line,
which the next one skips. A re-sent id gets the stored result; an id with only an intent gets
`outcome_unknown`; the same id for another call is refused. No fsync: the journal must survive the
gateway, not the machine.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from envkit.servers.contract import Reply, ToolFault, failure


def digest(tool: str, arguments: Mapping[str, object] | None) -> str:
    """Which call this is: the tool and its arguments, independent of their order."""
    text = json.dumps([tool, arguments or {}], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:32]


@dataclass(slots=True)
class _Entry:
    digest: str
    at: int = -1
    """Where the result line starts; negative while there is none."""
    size: int = 0


class Journal:
    """The ids seen so far; the results stay in the file."""

    def __init__(self, path: Path | None) -> None:
        """Open `path` and read what an earlier gateway left; None keeps all in memory."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.memfd_create("journal") if path is None else os.open(path, flags, 0o600)
        self._entries: dict[str, _Entry] = {}
        self._running: dict[str, asyncio.Future[Reply]] = {}
        self._end = 0
        self._load()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _load(self) -> None:
        with os.fdopen(os.dup(self._fd), "rb") as lines:
            lines.seek(0)
            for line in lines:
                self._replay(line)
                self._end += len(line)
        if self._end and os.pread(self._fd, 1, self._end - 1) != b"\n":
            self._append(b"\n")

    def _replay(self, line: bytes) -> None:
        try:
            record: dict[str, Any] = json.loads(line)
            kind, call_id = record["kind"], record["id"]
        except (ValueError, KeyError, TypeError):
            return
        if kind == "intent":
            self._entries[call_id] = _Entry(record["digest"])
        elif kind == "void":
            self._entries.pop(call_id, None)
        elif call_id in self._entries:
            self._entries[call_id].at, self._entries[call_id].size = self._end, len(line)

    def _append(self, line: bytes) -> None:
        os.write(self._fd, line)
        self._end += len(line)

    def _record(self, **record: object) -> bytes:
        line = json.dumps(record).encode() + b"\n"
        self._append(line)
        return line

    async def known(self, call_id: str, call: str) -> Reply | None:
        """The reply to an id already seen, waiting for one still at work; None when it is new."""
        entry = self._entries.get(call_id)
        if entry is None:
            return None
        if entry.digest != call:
            return failure(_conflict(call_id))
        if call_id in self._running:
            return await asyncio.shield(self._running[call_id])
        if entry.at < 0:
            return failure(_unknown(call_id))
        return Reply.from_record(json.loads(os.pread(self._fd, entry.size, entry.at))["reply"])

    def intend(self, call_id: str, call: str) -> None:
        """Write down that this call is about to run."""
        self._entries[call_id] = _Entry(call)
        self._running[call_id] = asyncio.get_running_loop().create_future()
        self._record(kind="intent", id=call_id, digest=call)

    def finish(self, call_id: str, reply: Reply) -> None:
        """Store the result and hand it to whoever re-sent the id meanwhile."""
        at = self._end
        line = self._record(kind="result", id=call_id, reply=reply.to_record())
        entry = self._entries[call_id]
        entry.at, entry.size = at, len(line)
        self._settle(call_id, reply)

    def abandon(self, call_id: str, *, had_no_effect: bool) -> None:
        """The call was cancelled: withdraw the intent if nothing was done, else leave it open."""
        if had_no_effect:
            self._entries.pop(call_id, None)
            self._record(kind="void", id=call_id)
        self._settle(call_id, failure(_unknown(call_id)))

    def _settle(self, call_id: str, reply: Reply) -> None:
        waiting = self._running.pop(call_id)
        if not waiting.done():
            waiting.set_result(reply)


def _conflict(call_id: str) -> ToolFault:
    return ToolFault(
        "call_id_conflict",
        f"The call id {call_id[:60]!r} was used for another call.",
        fix="Use a new id for a new call.",
    )


def _unknown(call_id: str) -> ToolFault:
    return ToolFault(
        "outcome_unknown",
        f"The call {call_id[:60]!r} was started and interrupted; it may or may not have worked.",
        fix="Look at the state first (list or read), then call again with a new id.",
        owner="server",
        applied="unknown",
    )
