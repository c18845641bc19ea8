# SPDX-License-Identifier: Apache-2.0
"""The one envelope every tool answers in, for successes and for errors.

A tool returns `Done` or raises `ToolFault`; nothing else reaches the agent. The envelope is the
`structuredContent` of the MCP result; `content[0].text` is prose or a table for the model.
Invariants: no value is null, an error is under 500 characters, names one field at most and says
what to do next, and `is_error` is true exactly when `ok` is false.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

type Json = str | int | float | bool | list[Json] | dict[str, Json]

ERROR_CHARS = 500

_STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "code": {"type": "string", "description": "stable; `ok`, or why not"},
        "did": {"type": "string", "description": "one sentence: what was done"},
        "counts": {"type": "object", "additionalProperties": {"type": "number"}},
        "paths": _STRINGS,
        "next": {"type": "object", "description": "arguments that continue; empty at the end"},
        "retryable": {"type": "boolean", "description": "the same call may succeed later"},
        "field": {"type": "string", "description": "the argument that is wrong"},
        "owner": {"type": "string", "description": "who caused the error: model or server"},
        "applied": {"type": "string", "description": "on error: `no`, `yes` or `unknown`"},
    },
    "required": ["ok", "code", "did", "counts", "paths", "next", "retryable"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture for the model: base64 data and its media type."""

    data: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A call that did what it says."""

    did: str
    """One sentence in the past tense."""
    text: str = ""
    """What the model reads; `did` when empty."""
    code: str = "ok"
    """`ok`, or a finer success such as `exit_nonzero` or `empty_file`."""
    counts: Mapping[str, int | float] = field(default_factory=dict[str, int | float])
    paths: Sequence[str] = ()
    next: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Arguments of the call that continues; empty when there is nothing more."""
    images: Sequence[Image] = ()
    remember: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parsed text the gateway may keep for later calls, by key."""


class ToolFault(Exception):
    """A call that failed, in the agent's terms.

    `code` is stable, `field` is the one argument that is wrong, `fix` is what to do next.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        fix: str,
        field: str = "",
        retryable: bool = False,
        owner: str = "model",
        applied: str = "no",
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.field = field
        self.retryable = retryable
        self.owner = owner
        self.applied = applied
        self.detail = detail
        """Longer evidence (output so far), sent as a second text after the error."""

    def line(self) -> str:
        """The error as the agent reads it, under the bound."""
        tail = f" {self.fix}"
        room = ERROR_CHARS - 1 - len(tail) - len(self.code) - 2
        return f"{self.code}: {_shorten(self.message, room)}{tail}"[: ERROR_CHARS - 1]


def _shorten(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(0, room - 3)]}..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back over the wire and into the journal."""

    texts: Sequence[str]
    envelope: Mapping[str, Json]
    images: Sequence[Image] = ()

    @property
    def is_error(self) -> bool:
        """True exactly when the envelope says `ok: false`."""
        return not self.envelope["ok"]

    def to_record(self) -> dict[str, Json]:
        """A JSON form that `from_record` reads back."""
        images: list[Json] = [{"data": i.data, "media_type": i.media_type} for i in self.images]
        return {"texts": list(self.texts), "envelope": dict(self.envelope), "images": images}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Reply":
        """Raises KeyError or TypeError when the record is not one of ours."""
        images = tuple(Image(**image) for image in record["images"])
        return cls(texts=tuple(record["texts"]), envelope=dict(record["envelope"]), images=images)


def success(done: Done) -> Reply:
    """The reply to a call that worked."""
    envelope: dict[str, Json] = {
        "ok": True,
        "code": done.code,
        "did": done.did,
        "counts": dict(done.counts),
        "paths": list(done.paths),
        "next": dict(done.next),
        "retryable": False,
    }
    return Reply(texts=(done.text or done.did,), envelope=envelope, images=tuple(done.images))


def failure(fault: ToolFault) -> Reply:
    """The reply to a call that failed."""
    envelope: dict[str, Json] = {
        "ok": False,
        "code": fault.code,
        "did": fault.line(),
        "counts": {},
        "paths": [],
        "next": {},
        "retryable": fault.retryable,
        "field": fault.field,
        "owner": fault.owner,
        "applied": fault.applied,
    }
    return Reply(texts=tuple(filter(None, (fault.line(), fault.detail))), envelope=envelope)
