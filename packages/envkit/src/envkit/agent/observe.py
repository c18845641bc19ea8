# SPDX-License-Identifier: Apache-2.0
"""What the model is shown of its calls' results: all of it, or its head and its tail.

Contract: a result that is too long is cut by tokens, two thirds from its beginning and one from its
end, with a line between that says how many tokens are missing and where the whole lies. It is never
replaced by an error, never cut inside a character, and what is shown fits its limit when encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

HEAD: Final = 2 / 3
LEAST: Final = 8
"""Tokens of a result that are worth showing beside the line that says what is missing."""
_REPLACED: Final = "\ufffd"


class Codec(Protocol):
    """As much of a `envkit.agent.types.Template` as is needed here."""

    def encode(self, text: str) -> list[int]:
        """Ids of plain text."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the model sees of a result."""

    text: str
    cut_tokens: int = 0
    """How many it does not see."""


class Result:
    """A result, encoded once, however often it is cut."""

    def __init__(self, text: str, codec: Codec) -> None:
        self.text = text.encode("utf-8", "replace").decode()
        """Without halves of characters, which no tokenizer takes."""
        self._codec = codec
        self._ids = codec.encode(self.text)

    def __len__(self) -> int:
        return len(self._ids)

    def shown(self, limit: int, path: str = "") -> Shown:
        """What fits into ``limit`` tokens; ``path`` is where the whole lies, if anywhere."""
        if len(self) <= limit:
            return Shown(text=self.text)
        room = limit - len(self._codec.encode(_line(len(self), path)))
        while room >= LEAST:
            shown = self._cut(room, path)
            over = len(self._codec.encode(shown.text)) - limit
            if over <= 0:
                return shown
            room -= over
        return self._line_alone(limit, path)

    def _cut(self, room: int, path: str) -> Shown:
        """Show about so many tokens; joins are encoded otherwise than parts, so it may be more."""
        head = self._head(int(room * HEAD))
        tail = self._tail(room - int(room * HEAD), len(self.text) - len(head))
        cut = len(self) - len(self._codec.encode(head)) - len(self._codec.encode(tail))
        return Shown(text=f"{head}{_line(cut, path)}{tail}", cut_tokens=cut)

    def _line_alone(self, limit: int, path: str) -> Shown:
        """Where not even the line fits, as much of the result as does."""
        line = _line(len(self), path).strip("\n")
        if len(self._codec.encode(line)) <= limit:
            return Shown(text=line, cut_tokens=len(self))
        kept = self._head(max(limit, 0))
        while kept and len(self._codec.encode(kept)) > limit:
            kept = kept[:-1]
        return Shown(text=kept, cut_tokens=len(self) - len(self._codec.encode(kept)))

    def _head(self, tokens: int) -> str:
        said = self._codec.decode(self._ids[:tokens]).rstrip(_REPLACED)
        if said and self.text.startswith(said):
            return said
        return self.text[: self._characters(tokens)]

    def _tail(self, tokens: int, most: int) -> str:
        said = self._codec.decode(self._ids[len(self) - tokens :]).lstrip(_REPLACED)
        if not (said and self.text.endswith(said)):
            said = self.text[len(self.text) - self._characters(tokens) :]
        return said[max(0, len(said) - most) :]

    def _characters(self, tokens: int) -> int:
        """Their part of the text, where decoding does not give the text back."""
        return len(self.text) * tokens // len(self)


def share(lengths: Sequence[int], most_each: int, most: int) -> int:
    """The limit of one result so that all of them together take ``most`` tokens at most.

    What short results leave is for the long ones; ``most_each`` 0 is no limit.
    """
    rest, longer = max(most, 0), sorted(lengths)
    limit = most_each or rest
    if sum(min(length, limit) for length in lengths) <= rest:
        return limit
    for position, length in enumerate(longer):
        even = rest // (len(longer) - position)
        if length > even:
            return min(limit, even)
        rest -= length
    return limit


def _line(tokens: int, path: str) -> str:
    where = f"; the whole is in {path}" if path else "; ask for less at once"
    return f"\n[{tokens} tokens are left out here{where}]\n"
