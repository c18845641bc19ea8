# SPDX-License-Identifier: Apache-2.0
"""Chat templates as Hugging Face renders them, with a clock that stands still.

Same environment (sandboxed, ``trim_blocks``, ``lstrip_blocks``, loop controls), same ``tojson``
(no HTML escapes, text as it is), same names. One thing differs on purpose: ``strftime_now`` gives a
fixed date, so that the same conversation has the same ids tomorrow. It is part of the template's
digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from envkit.fault import TemplateRefused

TODAY: Final = date(2024, 7, 26)
"""What ``strftime_now`` formats: the day that Llama 3.1's template falls back on."""


class Rendering:
    """One chat template and the variables that it is always given."""

    def __init__(self, text: str, variables: Mapping[str, Any], today: date = TODAY) -> None:
        """Compile it.

        Raises:
            TemplateRefused: it is no template.
        """
        self.variables = dict(variables)
        try:
            self._template = _environment(today).from_string(text)
        except TemplateError as error:
            raise TemplateRefused(f"the chat template cannot be compiled: {error}") from error
        self.digest = _digest([text, self.variables, today.isoformat()])
        """sha256 of the text, its variables and the date."""

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        generate: bool,
    ) -> str:
        """Text of a conversation, up to where the model samples where it is to ``generate``.

        Raises:
            TemplateRefused: the template does not take this conversation.
        """
        try:
            return self._template.render(
                messages=list(messages),
                tools=list(tools) or None,
                documents=None,
                add_generation_prompt=generate,
                **self.variables,
            )
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            roles = " ".join(each["role"] for each in messages)
            raise TemplateRefused(f"the chat template does not take ({roles}): {error}") from error


class _Generation(Extension):
    """``{% generation %}`` marks what a trainer would mask in; here it is only its content."""

    tags = {"generation"}  # noqa: RUF012 (as the base class has it)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment(today: date) -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    made.filters["tojson"] = _to_json
    names: dict[str, Any] = made.globals
    names.update(raise_exception=_raise, strftime_now=today.strftime)
    return made


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
