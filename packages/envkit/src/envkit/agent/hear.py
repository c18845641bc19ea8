# SPDX-License-Identifier: Apache-2.0
"""What a recorded episode says, by the tokenizer and chat template that it was made with.

Contract: only for people and reports. A turn is read as its parser read it, but for the schemas of
the tools, which are not recorded: values that the format does not type stay text. Where the chat
template cannot be used, turns are text in which nothing is told apart.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.agent.parse import parser_named
from envkit.agent.tokens import ChatTemplate, load_template
from envkit.agent.tokens.vocabulary import Vocabulary
from envkit.agent.types import Parser, ToolSpec
from envkit.fault import TemplateRefused
from envkit.trajectory.text import Asked, Decode, Hear, Said, plain_text
from envkit.trajectory.types import Episode

COPIES: Final = "tokenizers"
"""Directory of a run that has a copy of each tokenizer under its digest."""


def keep_copy(root: Path, template: ChatTemplate) -> None:
    """Leave a copy under a run's directory, so that text can be made of its ids for ever.

    Raises:
        OSError: it cannot be written.
    """
    place = root / COPIES / template.tokenizer_digest
    if place.exists():
        return
    part = place.with_name(f".{place.name}.part")
    template.save(part)
    part.replace(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ear:
    """How ids of one tokenizer become text, and text what was said."""

    digest: str
    """Of the tokenizer."""
    decode: Decode
    hear: Callable[[Episode], Hear]
    """For the turns of one episode."""


def ear(directory: Path, *, family: str = "") -> Ear:
    """Of a model directory, or of a run's copy of one.

    Raises:
        TemplateRefused: it has no tokenizer that can be read.
    """
    return _ear(directory.resolve(), family)


@functools.cache
def _ear(directory: Path, family: str) -> Ear:
    try:
        template = load_template(directory, family=family)
    except TemplateRefused:
        words = Vocabulary(_tokenizer(directory / "tokenizer.json"))
        return Ear(digest=words.digest, decode=words.decode, hear=lambda _: plain_text)
    return Ear(
        digest=template.tokenizer_digest,
        decode=template.decode,
        hear=lambda episode: _hear(template, episode),
    )


def _tokenizer(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateRefused(f"{file}: cannot be read: {error}") from error


def _hear(template: ChatTemplate, episode: Episode) -> Hear:
    parser = parser_named(template.parser_name, opens_thinking=template.opens_thinking)
    names = dict.fromkeys(call.name for call in episode.calls)
    tools = [ToolSpec(name=name, description="", parameters={"type": "object"}) for name in names]
    return heard_by(template, parser, tools)


def heard_by(template: ChatTemplate, parser: Parser, tools: Sequence[ToolSpec]) -> Hear:
    """How a turn's text is read by this parser, with or without the token that ends it."""
    stops = [template.decode([each]) for each in template.stop_ids]

    def hear(text: str) -> Said:
        for stop in stops:
            text = text.removesuffix(stop)
        parsed = parser.parse(text, tools)
        calls = tuple(Asked(name=each.name, arguments=each.arguments) for each in parsed.calls)
        return Said(content=parsed.content, thinking=parsed.thinking, calls=calls)

    return hear
