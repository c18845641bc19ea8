# SPDX-License-Identifier: Apache-2.0
"""Templates and parsers, loaded once a process: a large vocabulary takes seconds and 100 MiB.

A process that forks trials loads them first, so that all trials share one copy.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.agent.parse import parser_named
from envkit.agent.tokens import ChatTemplate, load_template
from envkit.agent.types import Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How one model is spoken to and understood."""

    template: ChatTemplate
    parser: Parser


def voice(
    directory: str | Path,
    *,
    family: str = "",
    parser: str = "",
    template: str = "",
    variables: Mapping[str, Any] | None = None,
) -> Voice:
    """What a model directory says; the others override what is found, see `load_template`.

    Raises:
        TemplateRefused: no trustworthy stream can be made with it.
    """
    given = json.dumps(dict(variables or {}), sort_keys=True)
    return _loaded(Path(directory).resolve(), family, parser, template, given)


@functools.cache
def _loaded(directory: Path, family: str, parser: str, template: str, variables: str) -> Voice:
    loaded = load_template(
        directory,
        family=family,
        template=Path(template) if template else None,
        variables=json.loads(variables),
    )
    name = parser or loaded.parser_name
    return Voice(template=loaded, parser=parser_named(name, opens_thinking=loaded.opens_thinking))
