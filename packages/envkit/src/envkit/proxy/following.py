# SPDX-License-Identifier: Apache-2.0
"""What may follow an answer and still be the same stream.

Contract: results of the answer's calls, one each, and behind them at most one message of the user;
or, after an answer without calls, one message of the user. For anything else the chat template has
not been proven to write what it would write in a whole conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from envkit.agent.types import Message
from envkit.proxy.types import Call, Mark


def not_following(calls: Sequence[Call], messages: Sequence[Message]) -> Mark | None:
    """Why messages cannot be proven to follow an answer with these calls; None where they can."""
    results = [each for each in messages if each.role == "tool"]
    rest = messages[len(results) :]
    if any(each.role != "user" for each in rest) or len(rest) > 1:
        roles = " ".join(each.role for each in messages)
        return Mark(code="other_messages", message=f"({roles}) follow an answer")
    if sorted(each.call_id for each in results) != sorted(each.request.call_id for each in calls):
        told = f"{len(results)} results for {len(calls)} calls"
        return Mark(code="unanswered_call", message=f"{told}, or other ids than were given")
    return None
