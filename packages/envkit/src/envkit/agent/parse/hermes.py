# SPDX-License-Identifier: Apache-2.0
"""``<tool_call>{"name": …, "arguments": {…}}</tool_call>``: Hermes, Qwen2.5, Qwen3."""

from __future__ import annotations

from envkit.agent.parse.jsoncall import json_call
from envkit.agent.parse.raw import Broken, RawCall
from envkit.agent.parse.reader import NotJson, Reader
from envkit.agent.parse.tags import CLOSE, OPEN, broken, stray


class Hermes:
    """The format; the JSON itself says where a call ends, so it may hold the tags as text."""

    name = "hermes"
    example = f'{OPEN}\n{{"name": "TOOL", "arguments": {{"KEY": "VALUE"}}}}\n{CLOSE}'
    think: tuple[str, str] = ("<think>", "</think>")

    def seek(self, reader: Reader, at: int) -> int:
        return reader.nearest((OPEN, CLOSE), at)[0]

    def read(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        if not reader.starts((OPEN,), at):
            raise stray(reader, at, CLOSE)
        start = reader.skip(at + len(OPEN))
        try:
            value, end = reader.json(start)
        except NotJson as error:
            raise broken(reader, start, f"no JSON after {OPEN}: {error}") from error
        close = reader.skip(end)
        if not reader.starts((CLOSE,), close):
            raise broken(reader, end, f"something else than {CLOSE} after the JSON")
        after = close + len(CLOSE)
        return [json_call(value, after)], after
