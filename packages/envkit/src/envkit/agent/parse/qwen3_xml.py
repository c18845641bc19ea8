# SPDX-License-Identifier: Apache-2.0
"""``<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>``.

Qwen3-Coder, Qwen3.5. A value is text as it stands, but for one line break at its beginning and one
at its end. It ends at the first ``</parameter>`` behind which the call goes on or ends, so it may
hold any of the tags, but not the end of a whole call or the beginning of another.
"""

from __future__ import annotations

import re
from typing import Final

from envkit.agent.parse.raw import Broken, RawCall, shown
from envkit.agent.parse.reader import Reader
from envkit.agent.parse.tags import CLOSE, OPEN, broken, stray

FUNCTION: Final = "<function="
END: Final = "</function>"
PARAMETER: Final = "<parameter="
VALUE_END: Final = "</parameter>"
_NAME: Final = re.compile(r"([^<>\n]{1,200})>")


class Qwen3Xml:
    """The format."""

    name = "qwen3_xml"
    example = f"{OPEN}\n{FUNCTION}TOOL>\n{PARAMETER}KEY>\nVALUE\n{VALUE_END}\n{END}\n{CLOSE}"
    think: tuple[str, str] = ("<think>", "</think>")

    def seek(self, reader: Reader, at: int) -> int:
        return reader.nearest((OPEN, CLOSE, FUNCTION), at)[0]

    def read(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        if not reader.starts((OPEN,), at):
            tag = CLOSE if reader.starts((CLOSE,), at) else FUNCTION
            raise stray(reader, at, tag)
        name, at = self._named(reader, reader.skip(at + len(OPEN)), FUNCTION)
        arguments: dict[str, str] = {}
        while reader.starts((PARAMETER,), at):
            key, start = self._named(reader, at, PARAMETER, skip=False)
            end = self._value_end(reader, start, key)
            arguments[key] = trimmed(reader.text[start:end])
            at = reader.skip(end + len(VALUE_END))
        for tag in (END, CLOSE):
            if not reader.starts((tag,), at):
                raise broken(reader, at, f"{tag} is missing")
            at = at + len(tag) if tag == CLOSE else reader.skip(at + len(tag))
        return [RawCall(name=name, arguments=arguments, spoken=True)], at

    def _named(self, reader: Reader, at: int, tag: str, skip: bool = True) -> tuple[str, int]:
        """The name behind ``tag``, and where its element's content begins."""
        found = _NAME.match(reader.text, at + len(tag)) if reader.starts((tag,), at) else None
        if not found:
            said = shown(reader.text[at : at + 200].split("\n")[0])
            raise broken(reader, at, f"{tag}NAME> is missing, there is {said}")
        return found[1].strip(), reader.skip(found.end()) if skip else found.end()

    def _value_end(self, reader: Reader, at: int, key: str) -> int:
        end = reader.find_before(VALUE_END, (PARAMETER, END), at)
        over = [
            place
            for place in (
                reader.find_before(END, (CLOSE,), at),
                reader.find_before(OPEN, (FUNCTION,), at),
            )
            if place >= 0
        ]
        if end < 0 or min(over, default=end) < end:
            stop = min(over, default=len(reader.text))
            raise broken(
                reader, stop, f"{PARAMETER}{key}> is not closed by {VALUE_END}", "unclosed"
            )
        return end


def trimmed(value: str) -> str:
    """``value`` without the line breaks that the format puts around it."""
    return value.removeprefix("\n").removesuffix("\n")
