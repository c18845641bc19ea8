# SPDX-License-Identifier: Apache-2.0
"""``[TOOL_CALLS]`` and a list of calls, or ``[TOOL_CALLS]NAME[ARGS]{…}`` for each: Mistral."""

from __future__ import annotations

from typing import Any, Final, cast

from envkit.agent.parse.jsoncall import json_call, json_calls
from envkit.agent.parse.raw import Broken, RawCall, shown
from envkit.agent.parse.reader import NotJson, Reader

TAG: Final = "[TOOL_CALLS]"
ARGS: Final = "[ARGS]"
CALL_ID: Final = "[CALL_ID]"


class Mistral:
    """The format, older and newer."""

    name = "mistral"
    example = f'{TAG}[{{"name": "TOOL", "arguments": {{"KEY": "VALUE"}}}}]'
    think: tuple[str, str] = ("[THINK]", "[/THINK]")

    def seek(self, reader: Reader, at: int) -> int:
        return reader.nearest((TAG, ARGS), at)[0]

    def read(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        if not reader.starts((TAG,), at):
            raise self._broken(reader, at + len(ARGS), f"{ARGS} without {TAG} before it")
        start = reader.skip(at + len(TAG))
        if reader.starts(("[",), start) and not reader.starts((ARGS, CALL_ID), start):
            return self._listed(reader, start)
        return self._named(reader, start)

    def _listed(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        value, end = self._json(reader, at, "the list of calls")
        if not value:
            raise Broken("malformed", "an empty list of calls", end)
        return json_calls(cast("list[Any]", value), end), end

    def _named(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        end, marker = reader.nearest(("{", ARGS, CALL_ID, TAG), at)
        name = reader.text[at:end].strip() if end >= 0 else ""
        if not name or marker == TAG:
            said = shown(reader.text[at : at + 200])
            raise self._broken(reader, at, f"neither a list nor a name after {TAG}: {said}")
        if marker == CALL_ID:
            end = reader.find(ARGS, end)
        start = end + len(ARGS) if reader.starts((ARGS,), end) else end
        value, end = self._json(reader, reader.skip(start), f"what {shown(name)} is called with")
        return [json_call({"name": name, "arguments": value}, end)], end

    def _json(self, reader: Reader, at: int, what: str) -> tuple[Any, int]:
        try:
            return reader.json(at) if at >= 0 else reader.json(len(reader.text))
        except NotJson as error:
            raise self._broken(reader, at, f"{what} is no JSON: {error}") from error

    def _broken(self, reader: Reader, at: int, message: str) -> Broken:
        place = reader.find(TAG, at)
        return Broken("malformed", message, place if place >= 0 else len(reader.text))
