# SPDX-License-Identifier: Apache-2.0
"""``{"name": …, "parameters": {…}}``, with or without ``<|python_tag|>`` before it: Llama 3.

Several stand one after the other with ``;`` between them, or in a list. Without the tag, JSON that
is no call is content.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from envkit.agent.parse.jsoncall import is_call, json_calls
from envkit.agent.parse.raw import Broken, NoCall, RawCall
from envkit.agent.parse.reader import NotJson, Reader

TAG: Final = "<|python_tag|>"
_START: Final = re.compile(
    re.escape(TAG) + r'|(?:\[\s*)?\{\s*"(?:name|type|function|parameters|arguments)"\s*:'
)


class Llama3Json:
    """The format."""

    name = "llama3_json"
    example = '{"name": "TOOL", "parameters": {"KEY": "VALUE"}}'
    think: tuple[str, str] = ("<think>", "</think>")

    def seek(self, reader: Reader, at: int) -> int:
        return reader.find_regex(_START, at)

    def read(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        tagged = reader.starts((TAG,), at)
        at = reader.skip(at + len(TAG)) if tagged else at
        calls = list[RawCall | Broken]()
        while True:
            try:
                values, end = self._values(reader, at)
            except Broken as broken:
                return [*calls, broken], broken.at
            if not tagged and not any(map(is_call, values)):
                if calls:
                    return calls, at
                raise NoCall(end)
            calls += json_calls(values, end)
            at = self._next(reader, end)
            if at == end:
                return calls, end

    def _values(self, reader: Reader, at: int) -> tuple[list[Any], int]:
        try:
            value, end = reader.json(at)
        except NotJson as error:
            whole = len(reader.text)
            raise Broken("malformed", f"the call is no JSON: {error}", whole) from error
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        if not values:
            raise Broken("malformed", "an empty list of calls", end)
        return values, end

    def _next(self, reader: Reader, end: int) -> int:
        """Where another call begins behind a separator; ``end`` where none does."""
        at = reader.skip(end)
        if reader.starts((";", ","), at):
            at = reader.skip(at + 1)
        return at if reader.starts(("{", "["), at) else end
