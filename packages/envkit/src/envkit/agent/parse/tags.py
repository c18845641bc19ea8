# SPDX-License-Identifier: Apache-2.0
"""``<tool_call>`` and ``</tool_call>``, between which three formats say a call."""

from __future__ import annotations

from typing import Final

from envkit.agent.parse.raw import Broken, Code
from envkit.agent.parse.reader import Reader

OPEN: Final = "<tool_call>"
CLOSE: Final = "</tool_call>"


def broken(reader: Reader, at: int, message: str, code: Code | None = None) -> Broken:
    """A call that goes wrong at ``at``: reading goes on behind its end, or at the next call.

    Without a ``code`` it is malformed where its end can be seen, else unclosed.
    """
    place, marker = reader.nearest((CLOSE, OPEN), at)
    if marker == CLOSE:
        place += len(CLOSE)
    elif code is None:
        code, message = "unclosed", f"{message}; {OPEN} is not closed by {CLOSE}"
    return Broken(code or "malformed", message, place if place >= 0 else len(reader.text))


def stray(reader: Reader, at: int, tag: str) -> Broken:
    """What belongs into a call and stands outside of one."""
    return broken(reader, at + len(tag), f"{tag} without {OPEN} before it", "malformed")
