# SPDX-License-Identifier: Apache-2.0
"""The messages an episode begins with: one system prompt, the same in training and in evaluation.

It is the text of ``prompt.md`` beside this module, and its digest stands on every trajectory.
"""

import hashlib
from pathlib import Path
from typing import Final

from envkit.agent.types import Message

SYSTEM: Final = Path(__file__).with_name("prompt.md").read_text(encoding="utf-8").strip()
"""The system prompt."""

SYSTEM_DIGEST: Final = hashlib.sha256(SYSTEM.encode()).hexdigest()


def opening(instruction: str) -> tuple[Message, ...]:
    """What a task's instruction is asked with."""
    return (
        Message(role="system", content=SYSTEM),
        Message(role="user", content=instruction),
    )
