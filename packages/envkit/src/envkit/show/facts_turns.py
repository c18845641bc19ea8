# SPDX-License-Identifier: Apache-2.0
"""The words of a story's turns: sizes and times, calls with their arguments, tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from envkit.preflight.text import count, one_line, seconds
from envkit.show.parts import Call, Turn
from envkit.show.plain import plain

SLOW: Final = 0.9
"""Of a request: a first token that took so much of it says nothing beside its seconds."""


def turn_facts(turn: Turn) -> Iterator[str]:
    """Tokens and seconds of a turn."""
    request = turn.request
    yield f"sampled {count(turn.sampled, 'token')} in {seconds(request.seconds)}"
    if request.first_token_s < SLOW * request.seconds:
        yield f"first after {seconds(request.first_token_s)}"
    if request.tries > 1:
        yield f"{request.tries} tries"
    ends = request.prompt_tokens + turn.sampled + turn.added
    yield f"context {request.prompt_tokens:,} to {ends:,}"
    if turn.waited_s >= 0.05:
        yield f"waited {seconds(turn.waited_s)} before"
    yield f"logprob {turn.mean_logprob:.2f}"
    if request.finish != "stop":
        yield f"finish {request.finish}"
    for at, version in turn.weights:
        yield f"weights {version}{f' from token {at}' if at else ''}"


INLINE: Final = 120
"""Characters of an argument on the line of its call; a longer one stands below it."""


def arguments(call: Call) -> str:
    """``path="/a", limit=3``; what is not known is an ellipsis, what is long its name alone."""
    if call.arguments is None:
        return "…"
    long = {key for key, _ in blocks(call)}
    return ", ".join(
        f"{one_line(plain(key), 60)}=" + ("↓" if key in long else one_line(plain(_json(value))))
        for key, value in call.arguments.items()
    )


def blocks(call: Call) -> Iterator[tuple[str, str]]:
    """Arguments of several lines, or too long for one, with their names."""
    for key, value in (call.arguments or {}).items():
        said = value if isinstance(value, str) else _json(value)
        if "\n" in said or len(said) > INLINE:
            yield key, said


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def outcome(call: Call) -> str:
    """``ok``, or that it failed and by which code."""
    return "ok" if call.record.ok else f"failed {plain(call.record.code)}".strip()


def cut(call: Call) -> str:
    """What the model was not shown at once."""
    return f"the model was not shown {count(call.record.cut_tokens, 'token')} of this result"


def visible(token: str) -> str:
    """A token on one line, its newlines and tabs spelt out."""
    return plain(token).replace("\n", "\\n").replace("\t", "\\t")
