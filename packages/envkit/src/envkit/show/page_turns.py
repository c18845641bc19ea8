# SPDX-License-Identifier: Apache-2.0
"""The turns of a story on its page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.preflight.markup import Child, Html, el
from envkit.preflight.page_parts import folded
from envkit.preflight.text import count, seconds
from envkit.show.facts_turns import arguments, blocks, cut, outcome, turn_facts
from envkit.show.parts import Call, Told, Turn
from envkit.show.plain import USUAL, Cut, plain, shorten

MOST: Final = 400_000
"""Characters of one text on the page; the JSON has all of it."""


def text(said: str, kind: str = "", cut_to: Cut = USUAL) -> Html:
    """A text; of a long one the beginning and the end, and all of it a click away."""
    said = plain(said).strip("\n")
    short = shorten(said, cut_to)
    if not short.left_out:
        return _pre(said, kind)
    rest = len(said) - MOST
    more = el("p", f"{count(rest, 'character')} more", class_="dim") if rest > 0 else ""
    whole = folded(f"all of it: {short.left_out} more", _pre(said[:MOST], kind), more)
    return el("div", _pre(f"{short.head}\n…\n{short.tail}", kind), whole)


def _pre(said: str, kind: str) -> Html:
    return el("pre", said, class_=kind) if kind else el("pre", said)


def turn_html(turn: Turn) -> Html:
    """One turn."""
    head = el("h3", f"Turn {turn.number}")
    told = el("span", ", ".join(turn_facts(turn)), class_="dim")
    return el("article", head, told, list(_said(turn)), id=f"turn-{turn.number}")


def _said(turn: Turn) -> Iterator[Child]:
    if turn.faults and turn.text is not None:
        yield text(turn.text)
    else:
        yield text(turn.thinking, "thinking") if turn.thinking else ""
        yield text(turn.content) if turn.content else ""
    for fault in turn.faults:
        yield el("div", el("b", f"cannot be read: {fault.code}", class_="bad"), class_="fault")
    yield [_call(each) for each in turn.calls]
    if turn.observed is not None and not any(call.result for call in turn.calls):
        yield el("div", text(turn.observed), class_="call")
    if turn.observed_tokens:
        yield el("div", f"observed {count(turn.observed_tokens, 'token')}", class_="dim")
    yield [_told(each) for each in turn.told]


def _call(call: Call) -> Html:
    record = call.record
    return el(
        "div",
        el("code", el("b", plain(record.name)), f"({arguments(call)}) "),
        el("span", outcome(call), class_="good" if record.ok else "bad"),
        el("span", f" in {seconds(record.seconds)}", class_="dim"),
        [
            (el("div", f"{plain(key)}:", class_="dim"), text(v, "argument"))
            for key, v in blocks(call)
        ],
        "" if call.result is None else text(call.result),
        el("div", cut(call), class_="dim") if record.cut_tokens else "",
        class_="call" if record.ok else "call failed",
    )


def _told(told: Told) -> Html:
    size = "in the observation" if told.tokens is None else count(told.tokens, "token")
    return el(
        "div",
        el("b", f"harness adds a {told.what}"),
        el("span", f" ({size}, not trained)", class_="dim"),
        text(told.text) if told.text else "",
        class_="told",
    )
