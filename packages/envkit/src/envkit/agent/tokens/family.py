# SPDX-License-Identifier: Apache-2.0
"""Which model family a template is of, by what it renders.

A family is how answers of tools are written and in which format calls are said; the second names
the parser. A name given by hand is believed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from envkit.fault import TemplateRefused

PARSERS: Final = MappingProxyType(
    {
        "qwen3": "hermes",
        "qwen3_xml": "qwen3_xml",
        "glm": "glm",
        "llama3": "llama3_json",
        "hermes": "hermes",
    }
)
"""Families, and the format in which each says its calls."""


def family_of(prompt: str, answers: str) -> str:
    """The family, by a prompt with tools and by what answers of tools look like.

    Raises:
        TemplateRefused: it is none that is known.
    """
    if "<|observation|>" in answers:
        return "glm"
    if "<|start_header_id|>" in answers:
        return "llama3"
    if "<|im_start|>tool" in answers:
        return "hermes"
    if "<|im_start|>" in answers:
        return "qwen3_xml" if "<function=" in prompt else "qwen3"
    raise TemplateRefused(
        f"the chat template is of no known family; if it says its calls as one of them does, "
        f"name it: {' '.join(PARSERS)}"
    )


def named_family(name: str) -> str:
    """The name, if there is such a family.

    Raises:
        TemplateRefused: there is none.
    """
    if name not in PARSERS:
        raise TemplateRefused(f"no template family {name!r}; known: {' '.join(PARSERS)}")
    return name
