# SPDX-License-Identifier: Apache-2.0
"""Text to ids, where what looks like a special token is text; ids to text.

A tokenizer finds its added tokens in any text: a tool result that holds ``<|im_end|>`` would end
the turn. Here text is encoded by a copy of the tokenizer whose added tokens are taken out, so that
nothing in it can become one; added tokens come only from where the caller says they stand.

Contract: for text without added tokens the ids are those of the tokenizer itself. Tokenizers for
which that cannot be had are refused by name. Added tokens of nothing but white space are ordinary
vocabulary and stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from tokenizers import Tokenizer

from envkit.fault import TemplateRefused

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a thread pool would not survive a fork

type Piece = str | int
"""Plain text, or the id of an added token."""


class Vocabulary:
    """The tokenizer of one model."""

    def __init__(self, text: str) -> None:
        """Load it from the text of a ``tokenizer.json``.

        Raises:
            TemplateRefused: it is none, or one that cannot be taken apart; the message says why.
        """
        data = _normal_form(text)
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        """sha256 of the file."""
        self._whole = _build(data)
        self._flags = {each["content"]: each for each in data["added_tokens"]}
        self.added: Mapping[str, int] = {
            content: each["id"] for content, each in self._flags.items() if content.strip()
        }
        """Ids of the added tokens, by their text."""
        data["added_tokens"] = [
            each for each in data["added_tokens"] if not each["content"].strip()
        ]
        data["post_processor"] = None
        self._first = _build(data)
        self._later = _build(_without_prefix(data)) if _prefixes_first(data) else self._first
        self._check(data)

    @property
    def size(self) -> int:
        """Ids are below it."""
        return self._whole.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, first: bool = False) -> list[int]:
        """Ids of plain text, which stands at the ``first`` place of a stream or later in it."""
        coder = self._first if first else self._later
        return coder.encode(text, add_special_tokens=False).ids

    def encode_pieces(self, pieces: Sequence[Piece], *, first: bool) -> list[int]:
        """Ids of text and added tokens in order."""
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids += self.encode(piece, first=first and not ids)
        return ids

    def encode_whole(self, text: str) -> list[int]:
        """Ids as the tokenizer has them, its added tokens recognised."""
        return self._whole.encode(text, add_special_tokens=False).ids

    def split(self, text: str) -> list[Piece]:
        """``text`` taken apart at the added tokens in it.

        Raises:
            TemplateRefused: one of them swallows what stands beside it.
        """
        present = sorted((each for each in self.added if each in text), key=len, reverse=True)
        if not present:
            return [text] if text else []
        return list(self._pieces(text, present))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens spelt out."""
        return self._whole.decode(list(ids), skip_special_tokens=False)

    def _pieces(self, text: str, present: Sequence[str]) -> Iterator[Piece]:
        at = 0
        for found in re.finditer("|".join(map(re.escape, present)), text):
            self._check_flags(found[0])
            if text[at : found.start()]:
                yield text[at : found.start()]
            yield self.added[found[0]]
            at = found.end()
        if text[at:]:
            yield text[at:]

    def _check_flags(self, content: str) -> None:
        odd = [flag for flag in ("lstrip", "rstrip", "single_word") if self._flags[content][flag]]
        if odd:
            raise TemplateRefused(f"added token {content} is {' and '.join(odd)}: not supported")

    def _sounds_like_a_token(self, content: str, unknown: str | None) -> bool:
        """Whether the text becomes an added token, other than the one for unknown text."""
        ids = {each for name, each in self.added.items() if name != unknown}
        return not ids.isdisjoint(self.encode(content, first=True))

    def _check(self, data: Mapping[str, Any]) -> None:
        for content, each in self._flags.items():
            if content not in self.added:
                if self._first.token_to_id(content) != each["id"]:
                    raise TemplateRefused(f"added token {content!r} has another id when alone")
            elif len(content) == 1:
                raise TemplateRefused(f"added token {content!r} is one character: never text again")
            elif each["normalized"] and data["normalizer"]:
                raise TemplateRefused(
                    f"added token {content} is looked for in normalised text: set normalized=false"
                )
            elif self._sounds_like_a_token(content, data["model"].get("unk_token")):
                raise TemplateRefused(f"the text {content} cannot be told from the token")


def _normal_form(text: str) -> dict[str, Any]:
    """The tokenizer as this version writes it: older spellings made explicit."""
    try:
        data = json.loads(Tokenizer.from_str(text).to_str())
    except Exception as error:  # the library raises bare Exception
        raise TemplateRefused(f"tokenizer.json cannot be read: {error}") from error
    data["truncation"] = data["padding"] = None
    if data["model"].get("dropout"):
        raise TemplateRefused("tokenizer.json has a dropout: the same text would get other ids")
    return data


def _build(data: Mapping[str, Any]) -> Tokenizer:
    return Tokenizer.from_str(json.dumps(data))


def _prefixes_first(data: Mapping[str, Any]) -> bool:
    return data != _without_prefix(data)


def _without_prefix(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same where no piece is the first, and none gets the space that the first one gets."""
    return {**data, "pre_tokenizer": _never_first(data["pre_tokenizer"])}


def _never_first(part: Any) -> Any:
    match part:
        case {"type": "Metaspace", "prepend_scheme": "first"}:
            return {**cast("dict[str, Any]", part), "prepend_scheme": "never"}
        case {"type": "Sequence", "pretokenizers": [*parts]}:
            parts = [_never_first(each) for each in parts]
            return {**cast("dict[str, Any]", part), "pretokenizers": parts}
        case _:
            return part
