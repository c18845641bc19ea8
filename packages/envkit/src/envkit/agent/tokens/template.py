# SPDX-License-Identifier: Apache-2.0
"""The chat template of one model with its tokenizer: `envkit.agent.types.Template`.

Contract: a template that loads keeps what the modules before this one promise; any other is refused
with the directory and the reason. Loading takes seconds for a large vocabulary, so it is done once
a process, before it forks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from envkit.agent.tokens.coder import Coder
from envkit.agent.tokens.difference import PROBES, QUESTION, Difference
from envkit.agent.tokens.family import PARSERS, family_of, named_family
from envkit.agent.tokens.files import ModelFiles, read_model
from envkit.agent.tokens.rendering import TODAY, Rendering
from envkit.agent.tokens.vocabulary import Vocabulary
from envkit.agent.types import Message, ToolSpec
from envkit.fault import TemplateRefused

PROBE_TOOL: Final = ToolSpec(
    name="probe_tool",
    description="A probe.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string", "description": "Any text."}},
        "required": ["text"],
    },
)


def load_template(
    directory: Path,
    *,
    family: str = "",
    template: Path | None = None,
    variables: Mapping[str, Any] | None = None,
    today: date = TODAY,
) -> ChatTemplate:
    """Load what a model directory has.

    ``family`` overrides what is found; ``template`` is a file in place of the directory's own;
    ``variables`` are what the template takes beside the messages (``enable_thinking``).

    Raises:
        TemplateRefused: no trustworthy stream can be made with it; the message says why.
    """
    try:
        files = read_model(directory, template)
        return ChatTemplate(files, family=family, variables=variables or {}, today=today)
    except TemplateRefused as error:
        text = str(error)
        raise TemplateRefused(text if str(directory) in text else f"{directory}: {text}") from error


class ChatTemplate:
    """A loaded template. Nothing in it changes; it may be used after a fork."""

    def __init__(
        self, files: ModelFiles, *, family: str, variables: Mapping[str, Any], today: date
    ) -> None:
        """Use `load_template`."""
        self._files = files
        vocabulary = Vocabulary(files.tokenizer)
        rendering = Rendering(files.template, {**files.named, **variables}, today)
        self._coder = Coder(rendering=rendering, vocabulary=vocabulary)
        self.tokenizer_digest = vocabulary.digest
        self.template_digest = rendering.digest
        self.stop_ids: tuple[int, ...] = _stop_ids(files, vocabulary)
        self._difference = Difference(self._coder, self.stop_ids)
        asked = self._coder.render([QUESTION], [PROBE_TOOL], generate=True).text
        if PROBE_TOOL.name not in asked:
            raise TemplateRefused("the chat template does not show tools to the model")
        answers = self._difference.text(PROBES[0])
        self.family = named_family(family) if family else family_of(asked, answers)
        self.parser_name: str = PARSERS[self.family]
        """Of `envkit.agent.parse.parser_named`."""
        self.opens_thinking: bool = asked.rstrip().endswith("<think>")
        """The model's turn begins inside a block of thinking that the prompt has opened."""

    @property
    def vocabulary_size(self) -> int:
        """Ids are below it."""
        return self._coder.vocabulary.size

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[int]:
        """Ids from the first to where the model samples.

        Raises:
            TemplateRefused: the template does not take these messages.
        """
        rendered = self._coder.render(messages, tools, generate=True)
        return self._coder.vocabulary.encode_pieces(self._coder.pieces(rendered), first=True)

    def observations(self, messages: Sequence[Message], *, after: int | None) -> list[int]:
        """Ids that follow a turn of the model, up to where it samples again.

        ``messages`` are the turn's tool answers, one of the user, or both in this order; ``after``
        is the last id of the turn. A stop token is never repeated.

        Raises:
            HarnessError: the turn has no stop token yet, where the template wants one.
            TemplateRefused: the template does not take these messages.
        """
        return self._difference.ids(messages, after=after)

    def end_of_turn(self, last: int) -> list[int]:
        """Stop token to add to a turn that ended with ``last``; nothing if that is one already.

        Nothing either where what follows a turn begins with the stop token.
        """
        end = self._difference.end
        return [] if end is None or last in self.stop_ids else [end]

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; what looks like a special token is text."""
        return self._coder.vocabulary.encode(text)

    def speak(self, text: str) -> list[int]:
        """Ids of a turn as a model would say it, special tokens recognised.

        For transcripts that no model sampled. What a model sampled is never encoded again.
        """
        return self._coder.vocabulary.encode_whole(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens spelt out."""
        return self._coder.vocabulary.decode(ids)

    def save(self, directory: Path) -> None:
        """Leave a copy from which the same template loads."""
        directory.mkdir(parents=True, exist_ok=True)
        stops = {"eos_token_id": list(self.stop_ids)}
        for name, text in (
            ("tokenizer.json", self._files.tokenizer),
            ("chat_template.jinja", self._files.template),
            ("tokenizer_config.json", json.dumps(dict(self._files.named))),
            ("generation_config.json", json.dumps(stops)),
        ):
            (directory / name).write_bytes(text.encode())


def _stop_ids(files: ModelFiles, vocabulary: Vocabulary) -> tuple[int, ...]:
    """The engine's own, and the tokenizer's end token."""
    ids = set(files.eos_ids)
    named = vocabulary.added.get(files.named.get("eos_token", ""))
    if named is not None:
        ids.add(named)
    if not ids:
        raise TemplateRefused("no stop token; name one in generation_config.json")
    if outside := sorted(each for each in ids if not 0 <= each < vocabulary.size):
        raise TemplateRefused(f"generation_config.json names unknown stop tokens: {outside}")
    return tuple(sorted(ids))
