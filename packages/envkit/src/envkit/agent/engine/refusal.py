# SPDX-License-Identifier: Apache-2.0
"""What an engine's word for an error means: of a status, or of an event inside a stream."""

from __future__ import annotations

from typing import Any, Final

import orjson

from envkit.fault import (
    EngineBusy,
    EngineFailed,
    EngineRefused,
    EnvkitError,
    PromptTooLong,
)

_TOO_LONG: Final = (
    "longer than the maximum model length",
    "maximum context length",
    "max_model_len",
)
_BUSY: Final = frozenset({408, 425, 429, 503})
SHOWN: Final = 300
"""Characters of an engine's own words that a message repeats."""


def refusal(status: int, body: bytes, retry_after: str = "") -> EnvkitError:
    """The error that an answer other than 200 stands for."""
    said = f"HTTP {status}: {_message(body)}"
    if status in _BUSY:
        return EngineBusy(said, _seconds(retry_after))
    if status >= 500:
        return EngineFailed(said)
    if any(each in said for each in _TOO_LONG):
        return PromptTooLong(said)
    return EngineRefused(said)


def error_in(event: bytes) -> EnvkitError | None:
    """The error that an event of a stream brings; None where it brings none.

    vLLM has answered 200 by then, whatever is wrong with the request.
    """
    if not event.startswith((b'{"error"', b'{"object":"error"')):
        return None
    try:
        code = int(orjson.loads(event)["error"]["code"])
    except (KeyError, TypeError, ValueError):
        code = 500
    return refusal(code, event)


def _message(body: bytes) -> str:
    try:
        told: Any = orjson.loads(body)
        message = str(told["error"]["message"])
    except (KeyError, TypeError, ValueError):
        message = body.decode(errors="replace")
    return " ".join(message.split())[:SHOWN]


def _seconds(retry_after: str) -> float:
    """Of a Retry-After header; a date counts as none."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        return 0.0
