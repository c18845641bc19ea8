# SPDX-License-Identifier: Apache-2.0
"""What a model directory says of its tokenizer, chat template and stop tokens.

Read are ``tokenizer.json``, ``tokenizer_config.json`` (the names of special tokens; a template of
older models), ``chat_template.jinja`` and ``generation_config.json`` (the stop tokens). Only
``tokenizer.json`` and one chat template must be there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from envkit.fault import TemplateRefused

NAMED: Final = (
    *("bos_token", "eos_token", "unk_token", "sep_token", "pad_token"),
    *("cls_token", "mask_token"),
)
"""Special tokens that templates know by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A model directory, read."""

    where: str
    tokenizer: str
    """Text of ``tokenizer.json``."""
    template: str
    named: Mapping[str, str]
    """Special tokens by the names that templates use."""
    eos_ids: tuple[int, ...]
    """Of ``generation_config.json``; empty where it says none."""


def read_model(directory: Path, template: Path | None = None) -> ModelFiles:
    """Read a model directory; ``template`` is a file in place of its own chat template.

    Raises:
        TemplateRefused: a file is missing or is not what it should be.
    """
    config = _json(directory / "tokenizer_config.json")
    return ModelFiles(
        where=str(directory),
        tokenizer=_text(directory / "tokenizer.json"),
        template=_text(template) if template else _template(directory, config),
        named=_named(config),
        eos_ids=_eos_ids(_json(directory / "generation_config.json")),
    )


def _template(directory: Path, config: Mapping[str, Any]) -> str:
    file = directory / "chat_template.jinja"
    if file.exists():
        return _text(file)
    found = config.get("chat_template")
    if isinstance(found, list):
        found = _by_name(cast("list[dict[str, str]]", found))
    if not isinstance(found, str):
        raise TemplateRefused(f"{directory}: no chat template; add chat_template.jinja")
    return found


def _by_name(templates: list[dict[str, str]]) -> str | None:
    names = {each.get("name", ""): each.get("template") for each in templates}
    return names.get("tool_use") or names.get("default")


def _named(config: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in NAMED:
        token: Any = config.get(name)
        if isinstance(token, dict):
            token = cast("dict[str, Any]", token).get("content")
        if isinstance(token, str):
            found[name] = token
    return found


def _eos_ids(config: Mapping[str, Any]) -> tuple[int, ...]:
    found: Any = config.get("eos_token_id")
    ids = cast("list[Any]", found) if isinstance(found, list) else [found]
    return tuple(each for each in ids if isinstance(each, int))


def _json(file: Path) -> Mapping[str, Any]:
    """Its object; an empty one where there is no file."""
    if not file.exists():
        return {}
    try:
        value: Any = json.loads(_text(file))
    except ValueError as error:
        raise TemplateRefused(f"{file}: is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise TemplateRefused(f"{file}: is no JSON object")
    return cast("dict[str, Any]", value)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except OSError as error:
        raise TemplateRefused(
            f"{file}: {error.strerror}; name the directory with the model's tokenizer.json and"
            " chat template"
        ) from error
    except UnicodeDecodeError as error:
        raise TemplateRefused(f"{file}: cannot be read: {error}") from error
