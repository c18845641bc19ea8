# SPDX-License-Identifier: Apache-2.0
"""What follows a turn of the model: the ids that its answers add to the stream.

A conversation of a fixed question and a fixed answer is rendered with the turn's messages behind
it, all of them together, and with the generation prompt; what stands behind the fixed answer is
what follows any turn. Behind it without messages the template writes how a turn ends: a stop token
(ChatML, Llama) or nothing (GLM, whose answers begin with the stop token). The difference begins
right after the stop token. It cannot merge with what the model sampled, for the stop token before
it, or the special token it begins with, is an added token, at which tokenizers take text apart.

Contract: a template for which that does not hold is refused when it is loaded. The same messages
give the same ids, whatever was said before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envkit.agent.tokens.coder import Coder, Rendered
from envkit.agent.types import Message
from envkit.fault import HarnessError, TemplateRefused

SENTINEL: Final = "Fixed-answer-0f6b"
QUESTION: Final = Message(role="user", content="Fixed-question-5d21")
ANSWER: Final = Message(role="assistant", content=SENTINEL)

_TOOL: Final = Message(role="tool", content="first", call_id="probe0001", name="probe")
_OTHER: Final = Message(role="tool", content="second", call_id="probe0002", name="probe")
_USER: Final = Message(role="user", content="go on")
PROBES: Final = ((_TOOL,), (_TOOL, _OTHER), (_USER,), (_TOOL, _OTHER, _USER))
"""What may follow a turn: one result, parallel ones, a user, results and a user."""


class Difference:
    """Ids of what follows a turn, for one template."""

    def __init__(self, coder: Coder, stop_ids: Sequence[int]) -> None:
        """Prove on probes that it exists.

        Raises:
            TemplateRefused: it does not; the message says what stands where it should begin.
        """
        self._coder = coder
        self._stop_ids = frozenset(stop_ids)
        base = self._behind((), generate=False)
        self.end: int | None = self._stop(base, "a turn") if base.guarded else None
        """The stop token that the template ends a turn with; None where answers begin with it."""
        for probe in PROBES:
            behind = self._behind(probe)
            self._stop(behind, "answers")
            if not behind.text.startswith(base.text):
                roles = " ".join(each.role for each in probe)
                raise TemplateRefused(f"a turn ends otherwise where ({roles}) follows it")

    def ids(self, messages: Sequence[Message], *, after: int | None) -> list[int]:
        """Ids that follow a turn whose last id is ``after``.

        Raises:
            HarnessError: the turn has no stop token yet, where the template wants one.
            TemplateRefused: the template does not take these messages.
        """
        if self.end is not None and after is not None and after not in self._stop_ids:
            raise HarnessError("the turn has no stop token yet: add what end_of_turn gives")
        pieces = self._coder.pieces(self._behind(messages))
        repeated = self.end if self.end is not None else after
        if pieces and pieces[0] == repeated:
            pieces = pieces[1:]
        return self._coder.vocabulary.encode_pieces(pieces, first=False)

    def text(self, messages: Sequence[Message]) -> str:
        """What follows a turn, its stop token included."""
        return self._behind(messages).text

    def _behind(self, messages: Sequence[Message], *, generate: bool = True) -> Rendered:
        whole = self._coder.render((QUESTION, ANSWER, *messages), generate=generate)
        if SENTINEL not in whole.guarded:
            raise TemplateRefused("the chat template leaves out what the assistant said")
        return whole.after(SENTINEL)

    def _stop(self, behind: Rendered, what: str) -> int:
        first = next(iter(self._coder.pieces(behind)), "")
        if isinstance(first, int) and first in self._stop_ids:
            return first
        decode = self._coder.vocabulary.decode
        shown = decode([first]) if isinstance(first, int) else first
        stops = " ".join(decode([each]) for each in sorted(self._stop_ids))
        raise TemplateRefused(
            f"what the chat template writes after {what} begins with {shown[:40]!r}, "
            f"not with a stop token ({stops}): what follows a turn cannot be told"
        )
