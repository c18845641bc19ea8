# SPDX-License-Identifier: Apache-2.0
"""Content that cannot be taken for special tokens while it is rendered.

Before rendering, a character that occurs nowhere in the conversation is put into every added token
that content spells out, after its first character, and between the template's text and content
that could complete one across the seam. After rendering and splitting at the tokens that are still
whole it is taken out again. What it leaves alone is left alone: content without such text renders
as it would have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from envkit.fault import TemplateRefused

PRIVATE: Final = (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))
"""Characters without a meaning of their own; one is chosen that does not occur. They are more than
one turn can hold: an agent that shows all of a font must not end its episode by that."""

THINK: Final = ("<think>", "</think>")
"""What templates look for in an earlier turn of the assistant."""


class Guard:
    """Protects one conversation."""

    def __init__(self, added: Iterable[str], conversation: object) -> None:
        """``conversation`` is all that will be rendered."""
        self._added = tuple(added)
        self._seam = _seam(self._added)
        self.mark = _unused(conversation)
        self._escaped = _escaped(self.mark)

    def remove(self, text: str) -> str:
        """``text`` without the marks, also where a filter escaped them."""
        return text.replace(self.mark, "").replace(self._escaped, "")

    def message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message whose content, names and arguments are only text."""
        keep = THINK if message["role"] == "assistant" else ()
        others = {key: each for key, each in message.items() if key not in ("role", "content")}
        content = self._content(message["content"], keep)
        return {"role": message["role"], "content": content, **self._value(others)}

    def tool(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """A tool's schema that is only text."""
        return self._value(tool)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            items = cast("Mapping[str, Any]", value).items()
            return {self._key(key): self._value(each) for key, each in items}
        if isinstance(value, list | tuple):
            return [self._value(each) for each in cast("Sequence[Any]", value)]
        return value

    def _key(self, key: str) -> str:
        """A key, which some templates put between ``<`` and ``>``."""
        if f"<{key}>" in self._added or f"</{key}>" in self._added:
            return key[:1] + self.mark + key[1:]
        return self._text(key)

    def _content(self, text: str, keep: Sequence[str] = ()) -> str:
        """Content of a message, guarded but for what it is to ``keep``."""
        for i, part in enumerate(keep):
            if part in text:
                return part.join(self._content(each, keep[i + 1 :]) for each in text.split(part))
        core = text.strip()
        if core in self._seam.middles:
            return text.replace(core, self.mark + core)
        return self._text(text)

    def _text(self, text: str) -> str:
        return self._seams(self._inside(text))

    def _inside(self, text: str) -> str:
        whole = [each for each in self._added if each in text]
        while whole:
            for each in whole:
                text = text.replace(each, each[0] + self.mark + each[1:])
            whole = [each for each in whole if each in text]
        return text

    def _seams(self, text: str) -> str:
        """Marks within the white space around it, which templates may strip."""
        core = text.strip()
        start = len(text) - len(text.lstrip())
        if core and self._seam.starts(core):
            text = text[:start] + self.mark + text[start:]
        if core and self._seam.ends(core):
            end = len(text.rstrip())
            text = text[:end] + self.mark + text[end:]
        return text


@dataclass(frozen=True, slots=True)
class _Seam:
    """What completes an added token: its proper beginnings, ends and middles."""

    heads: frozenset[str]
    tails: frozenset[str]
    middles: frozenset[str]
    """For content only: ``object`` may be one, and templates compare the words of schemas."""
    longest: int

    def starts(self, text: str) -> bool:
        return any(text[:i] in self.tails for i in range(1, self.longest))

    def ends(self, text: str) -> bool:
        return any(text[-i:] in self.heads for i in range(1, self.longest))


@lru_cache(maxsize=8)
def _seam(added: tuple[str, ...]) -> _Seam:
    return _Seam(
        heads=frozenset(each[:i] for each in added for i in range(1, len(each))),
        tails=frozenset(each[i:] for each in added for i in range(1, len(each))),
        middles=frozenset(
            each[i:j]
            for each in added
            for i in range(1, len(each) - 1)
            for j in range(i + 1, len(each))
        ),
        longest=max(map(len, added), default=0),
    )


def _unused(conversation: object) -> str:
    text = "\n".join(_strings(conversation))
    for code in PRIVATE:
        if chr(code) not in text and _escaped(chr(code)) not in text:
            return chr(code)
    raise TemplateRefused("every private character occurs in the conversation")


def _escaped(mark: str) -> str:
    """As JSON spells it in ASCII."""
    return json.dumps(mark)[1:-1]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            yield key
            yield from _strings(each)
    elif isinstance(value, list | tuple):
        for each in cast("Sequence[object]", value):
            yield from _strings(each)
