# SPDX-License-Identifier: Apache-2.0
"""``<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>``: GLM-4.5 on.

A value is text as it stands. It ends at the first ``</arg_value>`` behind which another argument or
the end of the call stands, and must do so before another call begins.
"""

from __future__ import annotations

from typing import Final

from envkit.agent.parse.raw import Broken, RawCall, shown
from envkit.agent.parse.reader import Reader
from envkit.agent.parse.tags import CLOSE, OPEN, broken, stray

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
            tag = CLOSE if reader.starts((CLOSE,), at) else KEY
            raise stray(reader, at, tag)
        start = at + len(OPEN)
        at, marker = reader.nearest((KEY, CLOSE, OPEN), start)
        name = reader.text[start:at].strip() if at >= 0 else ""
        if marker not in (KEY, CLOSE):
            raise broken(reader, start, f"no {KEY} and no {CLOSE} after {OPEN}")
        if not name or "\n" in name or "{" in name:
            raise broken(reader, at, f"no name of a tool after {OPEN}: {shown(name)}")
        arguments: dict[str, str] = {}
        while reader.starts((KEY,), at):
            key, value, at = self._argument(reader, at)
            arguments[key] = value
        if not reader.starts((CLOSE,), at):
            raise broken(reader, at, f"{CLOSE} is missing")
        call = RawCall(name=name, arguments=arguments, spoken=True)
        return [call], at + len(CLOSE)

    def _argument(self, reader: Reader, at: int) -> tuple[str, str, int]:
        start = at + len(KEY)
        end = reader.find_before(KEY_END, (VALUE,), start)
        other = reader.nearest((OPEN, CLOSE), start)[0]
        if end < 0 or 0 <= other < end:
            raise broken(reader, start, f"{KEY} without {KEY_END} and {VALUE} behind it")
        key = reader.text[start:end].strip()
        start = reader.skip(end + len(KEY_END)) + len(VALUE)
        end = reader.find_before(VALUE_END, (KEY, CLOSE), start)
        other = reader.find(OPEN, start)
        if end < 0 or 0 <= other < end:
            stop = other if other >= 0 else len(reader.text)
            raise broken(
                reader, stop, f"{VALUE} of {shown(key)} is not closed by {VALUE_END}", "unclosed"
            )
        return key, reader.text[start:end], reader.skip(end + len(VALUE_END))
