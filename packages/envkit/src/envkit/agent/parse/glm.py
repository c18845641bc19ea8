# SPDX-License-Identifier: Apache-2.0
"""``<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>``: GLM-4.5 on.

A value is text as it stands. It ends at the first ``</arg_value>`` behind which another argument or
the end of the call stands, and must do so before another call begins.
"""

from __future__ import annotations

from typing import Final

from envkit.agent.parse.raw import Broken, RawCall, shown
from envkit.agent.parse.reader import Reader

OPEN: Final = "<tool_call>"
CLOSE: Final = "</tool_call>"
KEY: Final = "<arg_key>"
KEY_END: Final = "</arg_key>"
VALUE: Final = "<arg_value>"
VALUE_END: Final = "</arg_value>"


class Glm:
    """The format."""

    name = "glm"
    example = f"{OPEN}TOOL\n{KEY}KEY{KEY_END}\n{VALUE}VALUE{VALUE_END}\n{CLOSE}"
    think: tuple[str, str] = ("<think>", "</think>")

    def seek(self, reader: Reader, at: int) -> int:
        return reader.nearest((OPEN, CLOSE, KEY), at)[0]

    def read(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        if not reader.starts((OPEN,), at):
            stray = CLOSE if reader.starts((CLOSE,), at) else KEY
            raise self._broken(reader, at + len(stray), f"{stray} without {OPEN} before it")
        start = at + len(OPEN)
        at, marker = reader.nearest((KEY, CLOSE, OPEN), start)
        name = reader.text[start:at].strip() if at >= 0 else ""
        if marker not in (KEY, CLOSE):
            raise self._broken(reader, start, f"{OPEN} is not closed by {CLOSE}", True)
        if not name or "\n" in name or "{" in name:
            raise self._broken(reader, at, f"no name of a tool after {OPEN}: {shown(name)}")
        arguments: dict[str, str] = {}
        while reader.starts((KEY,), at):
            key, value, at = self._argument(reader, at)
            arguments[key] = value
        if not reader.starts((CLOSE,), at):
            raise self._broken(reader, at, f"{CLOSE} is missing")
        call = RawCall(name=name, arguments=arguments, spoken=True)
        return [call], at + len(CLOSE)

    def _argument(self, reader: Reader, at: int) -> tuple[str, str, int]:
        start = at + len(KEY)
        end = reader.find_before(KEY_END, (VALUE,), start)
        other = reader.nearest((OPEN, CLOSE), start)[0]
        if end < 0 or 0 <= other < end:
            raise self._broken(reader, start, f"{KEY} without {KEY_END} and {VALUE} behind it")
        key = reader.text[start:end].strip()
        start = reader.skip(end + len(KEY_END)) + len(VALUE)
        end = reader.find_before(VALUE_END, (KEY, CLOSE), start)
        other = reader.find(OPEN, start)
        if end < 0 or 0 <= other < end:
            stop = other if other >= 0 else len(reader.text)
            raise self._broken(
                reader, stop, f"{VALUE} of {shown(key)} is not closed by {VALUE_END}", True
            )
        return key, reader.text[start:end], reader.skip(end + len(VALUE_END))

    def _broken(self, reader: Reader, at: int, message: str, unclosed: bool = False) -> Broken:
        place, marker = reader.nearest((CLOSE, OPEN), at)
        if marker == CLOSE:
            place += len(CLOSE)
        more = place if place >= 0 else len(reader.text)
        code = "unclosed" if unclosed or marker != CLOSE else "malformed"
        return Broken(code, message, more)
