# SPDX-License-Identifier: Apache-2.0
"""An episode as it happened, in ATIF: with arguments and whole results, which no store keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envkit.agent.hear import heard_by
from envkit.agent.history import History
from envkit.agent.loaded import Voice
from envkit.agent.types import Message, ToolSpec
from envkit.trajectory.atif import to_atif
from envkit.trajectory.text import CallText
from envkit.trajectory.types import Episode, Identity


def told(
    history: History,
    voice: Voice,
    identity: Identity,
    episode: Episode,
    *,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
) -> dict[str, Any]:
    """A document that JSON can hold; ``messages`` and ``tools`` are those of the prompt."""
    return to_atif(
        identity,
        episode,
        voice.template.decode,
        hear=heard_by(voice.template, voice.parser, tools),
        texts=_texts(history),
        prompt=[(each.role, each.content) for each in messages],
        tools=[each.to_openai() for each in tools],
    )


def _texts(history: History) -> Mapping[str, CallText]:
    seen = (acted.observation for turn in history.turns for acted in turn.acted)
    return {
        each.call.call_id: CallText(arguments=each.call.arguments, result=each.text)
        for each in seen
    }
