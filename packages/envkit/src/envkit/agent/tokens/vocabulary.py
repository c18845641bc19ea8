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
from typing import Any, Final, cast

from tokenizers import Tokenizer

from envkit.fault import TemplateRefused

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a thread pool would not survive a fork

FLAGS: Final = ("lstrip", "rstrip", "single_word")
"""Of added tokens that look at, or swallow, what stands beside them."""

type Piece = str | int
"""Plain text, or the id of an added token."""


class Vocabulary:
    """The tokenizer of one model."""

    def __init__(self, text: str) -> None:
        """Load it from the text of a ``tokenizer.json``.

        Raises:
            TemplateRefused: it is none, or one that cannot be taken apart; the message says why.
        """
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        """sha256 of the file."""
        self._whole = _load(text)
        self.size = 1 + max(self._whole.get_vocab(with_added_tokens=True).values(), default=-1)
        """Ids are below it."""
        self._flags = {
            each.content: each for _, each in sorted(self._whole.get_added_tokens_decoder().items())
        }
        self.added: Mapping[str, int] = {
            each: self._id(each) for each in self._flags if each.strip()
        }
        """Ids of the added tokens, by their text."""
        data = json.loads(text)
        data |= {"truncation": None, "padding": None, "post_processor": None}
        data["added_tokens"] = [
            each for each in data.get("added_tokens", ()) if each["content"] not in self.added
        ]
        self._first = Tokenizer.from_str(json.dumps(data))
        self._later = _never_first(self._first, data)
        self._check(data)

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

    def _id(self, content: str) -> int:
        return cast("int", self._whole.token_to_id(content))

    def _check_flags(self, content: str) -> None:
        odd = [flag for flag in FLAGS if getattr(self._flags[content], flag)]
        if odd:
            raise TemplateRefused(f"added token {content} is {' and '.join(odd)}: not supported")

    def _sounds_like_a_token(self, content: str, unknown: str | None) -> bool:
        """Whether the text becomes an added token, other than the one for unknown text."""
        ids = {each for name, each in self.added.items() if name != unknown}
        return not ids.isdisjoint(self.encode(content, first=True))

    def _check(self, data: Mapping[str, Any]) -> None:
        if data["model"].get("dropout"):
            raise TemplateRefused("tokenizer.json has a dropout: the same text gets other ids")
        for content, each in self._flags.items():
            if content not in self.added:
                if self._first.token_to_id(content) != self._id(content):
                    raise TemplateRefused(f"added token {content!r} has another id when alone")
            elif len(content) == 1:
                raise TemplateRefused(f"added token {content!r} is one character: never text again")
            elif each.normalized and data["normalizer"]:
                raise TemplateRefused(
                    f"added token {content} is looked for in normalised text: set normalized=false"
                )
            elif self._sounds_like_a_token(content, data["model"].get("unk_token")):
                raise TemplateRefused(f"the text {content} cannot be told from the token")


def _load(text: str) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare Exception
        raise TemplateRefused(f"tokenizer.json cannot be read: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _never_first(tokenizer: Tokenizer, data: Mapping[str, Any]) -> Tokenizer:
    """The same where no text is the first, and none gets the space that the first one gets."""
    if tokenizer.pre_tokenizer is None:
        return tokenizer
    parts = json.loads(tokenizer.pre_tokenizer.__getstate__())  # older spellings made explicit
    others = _without_prefix(parts)
    if others == parts:
        return tokenizer
    return Tokenizer.from_str(json.dumps({**data, "pre_tokenizer": others}))


def _without_prefix(part: Any) -> Any:
    match part:
        case {"type": "Metaspace", "prepend_scheme": "first"}:
            return {**cast("dict[str, Any]", part), "prepend_scheme": "never"}
        case {"type": "Sequence", "pretokenizers": [*parts]}:
            parts = [_without_prefix(each) for each in parts]
            return {**cast("dict[str, Any]", part), "pretokenizers": parts}
        case _:
            return part
