# SPDX-License-Identifier: Apache-2.0
"""Templates and parsers, loaded once a process: a large vocabulary takes seconds and 100 MiB.

A process that forks trials loads them first, so that all trials share one copy.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from envkit.agent.parse import parser_named
from envkit.agent.tokens import ChatTemplate, load_template
from envkit.agent.types import Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How one model is spoken to and understood."""

    template: ChatTemplate
    parser: Parser


def voice(directory: str | Path, *, family: str = "", parser: str = "") -> Voice:
    """What a model directory says; ``family`` and ``parser`` override what is found.

    Raises:
        TemplateRefused: no trustworthy stream can be made with it.
    """
    return _loaded(Path(directory).resolve(), family, parser)


@functools.cache
def _loaded(directory: Path, family: str, parser: str) -> Voice:
    template = load_template(directory, family=family)
    name = parser or template.parser_name
    return Voice(
        template=template, parser=parser_named(name, opens_thinking=template.opens_thinking)
    )
