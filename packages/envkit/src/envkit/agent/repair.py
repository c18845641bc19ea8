# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a turn of the model, and what it is told of it.

Contract: a turn that ran into its limit, a call that cannot be read, and an answer that is not
given as this toolbelt wants it each have a code and a text that says how to say it right. Of a turn
that was cut off nothing is carried out. A turn without a problem has calls or is the final answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from envkit.agent.parse import cut_off
from envkit.agent.types import Parsed, Parser, Sampled, ToolSpec, Unreadable
from envkit.trajectory.types import ParseFault

FINAL_ANSWER: Final = "final_answer"
"""A toolbelt that has a tool of this name wants the answer by it."""

_NO_CALL: Final = Unreadable(
    code="no_call",
    message=f"Your message has no tool call. Go on with a tool, or answer by {FINAL_ANSWER}.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Of one turn."""

    faults: tuple[ParseFault, ...]

    @property
    def text(self) -> str:
        """What the model is told."""
        return "\n".join(fault.message for fault in self.faults)


def read(parser: Parser, text: str, tools: Sequence[ToolSpec], sampled: Sampled) -> Parsed:
    """What a turn says; ``text`` is without its stop token."""
    parsed = parser.parse(text, tools)
    if sampled.finish == "length":
        return replace(parsed, calls=(), unreadable=(cut_off(len(sampled.token_ids)),))
    by_tool = any(tool.name == FINAL_ANSWER for tool in tools)
    if by_tool and not parsed.calls and not parsed.unreadable:
        return replace(parsed, unreadable=(_NO_CALL,))
    return parsed


def problem_of(parsed: Parsed, turn: int) -> Problem | None:
    """What is wrong with a turn, if anything is; the same of several calls is said once."""
    faults = tuple(
        ParseFault(turn=turn, code=each.code, message=each.message)
        for each in dict.fromkeys(parsed.unreadable)
    )
    return Problem(faults=faults) if faults else None
