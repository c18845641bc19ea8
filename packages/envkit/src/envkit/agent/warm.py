# SPDX-License-Identifier: Apache-2.0
"""What every trial of a model's agent needs, loaded once in the process that forks them.

Importing the agent takes half a second of CPU, a large vocabulary seconds and 100 MiB: its copies
share both. Starts no thread.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from envkit.agent.loaded import Voice, voice
from envkit.agent.settings import ModelSettings


def warm(tokenizer: str, **how: Any) -> None:
    """Import the agent, and load the model's tokenizer and template as `voice` does.

    Raises:
        TemplateRefused: no trustworthy stream can be made with them.
    """
    import_module("envkit.agent.model")
    ModelSettings.read(engine="", tokenizer=tokenizer)  # makes what settings are checked by
    voice(tokenizer, **how)


def voice_of(settings: ModelSettings) -> Voice:
    """The template and parser that an agent with these settings speaks by; raises as `warm`."""
    return voice(
        settings.tokenizer,
        family=settings.family,
        parser=settings.parser,
        template=settings.template,
        variables=settings.variables,
    )
