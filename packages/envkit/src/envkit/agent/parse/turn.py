# SPDX-License-Identifier: Apache-2.0
"""A whole turn of the model: thinking, content, calls.

Blocks of thinking are taken out first come, first served: a tag of one inside a call is text of the
call. A block that the prompt has opened, or whose opening the model left out, ends at its closing
tag. Calls in a closed block are thoughts; calls in one that is not closed are a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from envkit.agent.parse.glm import Glm
from envkit.agent.parse.hermes import Hermes
from envkit.agent.parse.llama3 import Llama3Json
from envkit.agent.parse.mistral import Mistral
from envkit.agent.parse.qwen3_xml import Qwen3Xml
from envkit.agent.parse.raw import Broken, Code, Format, NoCall, RawCall
from envkit.agent.parse.reader import NotJson, Reader
from envkit.agent.parse.typed import typed
from envkit.agent.types import CallRequest, Parsed, ToolSpec, Unreadable
from envkit.fault import HarnessError

_ALL: Final[tuple[Format, ...]] = (Hermes(), Qwen3Xml(), Glm(), Llama3Json(), Mistral())
FORMATS: Final[Mapping[str, Format]] = MappingProxyType({each.name: each for each in _ALL})
"""By name."""

MOST_BROKEN: Final = 8
"""After so many broken calls the rest of a turn is not read."""

_BARE: Final = re.compile(r'\{\s*"name"\s*:')


def parser_named(name: str, *, opens_thinking: bool = False) -> TurnParser:
    """The parser of a format; ``opens_thinking`` where the prompt has opened a block of thinking.

    Raises:
        HarnessError: there is no such format.
    """
    return TurnParser(format_named(name), opens_thinking=opens_thinking)


def format_named(name: str) -> Format:
    """The format. Raises HarnessError where there is none of this name."""
    if name not in FORMATS:
        raise HarnessError(f"no tool-call format {name!r}; known: {' '.join(FORMATS)}")
    return FORMATS[name]


class TurnParser:
    """Reads turns that say their calls in one format."""

    def __init__(self, format: Format, *, opens_thinking: bool = False) -> None:
        self.name = format.name
        self._format = format
        self._opens_thinking = opens_thinking

    def parse(self, text: str, tools: Sequence[ToolSpec]) -> Parsed:
        """What a sample says; ``text`` is without its stop token. Never raises."""
        return self.read(Reader(text), tools)

    def read(self, reader: Reader, tools: Sequence[ToolSpec]) -> Parsed:
        """The same of a reader, which then tells how much of the text was passed over."""
        turn = _Turn(reader, self._format, {each.name: each for each in tools})
        turn.read(self._opens_thinking)
        return turn.parsed()


class _Turn:
    """One turn being read."""

    def __init__(self, reader: Reader, format: Format, tools: Mapping[str, ToolSpec]) -> None:
        self._reader = reader
        self._format = format
        self._tools = tools
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[CallRequest] = []
        self._broken: list[Unreadable] = []

    def read(self, opens_thinking: bool) -> None:
        at = self._think(0) if opens_thinking or self._opening_left_out() else 0
        while at < len(self._reader.text) and len(self._broken) < MOST_BROKEN:
            at = self._step(at)
        if not self._calls and not self._broken:
            self._look_again()

    def parsed(self) -> Parsed:
        return Parsed(
            content="".join(self._content).strip(),
            thinking="\n".join(filter(None, map(str.strip, self._thinking))),
            calls=tuple(self._calls),
            unreadable=tuple(self._broken),
        )

    def _opening_left_out(self) -> bool:
        opening, closing = self._format.think
        closed = self._reader.find(closing, 0)
        others = (self._reader.find(opening, 0), self._format.seek(self._reader, 0))
        return closed >= 0 and all(other < 0 or closed < other for other in others)

    def _step(self, at: int) -> int:
        """Read content up to what is not, and that; returns where to go on."""
        opening, closing = self._format.think
        thought, tag = self._reader.nearest((opening, closing), at)
        call = self._format.seek(self._reader, at)
        if thought < 0 and call < 0:
            self._content.append(self._reader.text[at:])
            return len(self._reader.text)
        first = min(each for each in (thought, call) if each >= 0)
        self._content.append(self._reader.text[at:first])
        if first == call:
            return self._call(first)
        return self._think(first + len(tag)) if tag == opening else first + len(tag)

    def _think(self, at: int) -> int:
        """Read a block of thinking that was opened before ``at``."""
        opening, closing = self._format.think
        end = self._reader.find(closing, at)
        stop = end if end >= 0 else len(self._reader.text)
        self._thinking.append(self._reader.text[at:stop].lstrip().removeprefix(opening))
        if end >= 0:
            return end + len(closing)
        inside = self._format.seek(self._reader, at) >= 0
        what = "a call inside it was not carried out" if inside else "nothing came after it"
        self._broken.append(
            Unreadable(
                code="inside_think" if inside else "unclosed",
                message=f"Your thinking was not closed, so {what}. Put {closing} behind your "
                "thoughts, and then call a tool or answer.",
            )
        )
        return stop

    def _call(self, at: int) -> int:
        try:
            raw, end = self._format.read(self._reader, at)
        except NoCall as content:
            self._content.append(self._reader.text[at : content.at])
            return content.at
        except Broken as broken:
            self._note(broken.code, broken.message)
            return max(broken.at, at + 1)
        for each in raw:
            if len(self._broken) < MOST_BROKEN:
                self._take(each)
        return end

    def _take(self, raw: RawCall | Broken) -> None:
        if isinstance(raw, Broken):
            self._note(raw.code, raw.message)
            return
        try:
            self._calls.append(typed(raw, self._tools))
        except Broken as broken:
            self._note(broken.code, broken.message)

    def _look_again(self) -> None:
        """A turn without calls that was meant to have one is not a final answer."""
        content = "".join(self._content)
        thoughts = Reader("\n".join(self._thinking))
        if not content.strip() and self._format.seek(thoughts, 0) >= 0:
            closing = self._format.think[1]
            self._note("inside_think", f"a call inside thinking, and nothing after {closing}")
        bare = _BARE.search(content)
        if bare and _names_tool(content[bare.start() :], self._tools):
            self._note("malformed", "a call as bare JSON, not in the format of calls")

    def _note(self, code: Code, what: str) -> None:
        message = f"A call could not be read: {what}. Say it so:\n{self._format.example}"
        if code in ("unknown_tool", "wrong_type", "missing_argument", "unknown_argument"):
            message = f"A call was not carried out: {what}."
        if len(self._broken) == MOST_BROKEN - 1:
            message += "\nNothing after it was read."
        self._broken.append(Unreadable(code=code, message=message))


def _names_tool(text: str, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the JSON that ``text`` begins with names a tool."""
    try:
        value, _ = Reader(text).json(0)
    except NotJson:
        return False
    name = cast("dict[str, Any]", value).get("name") if isinstance(value, dict) else None
    return isinstance(name, str) and name in tools
