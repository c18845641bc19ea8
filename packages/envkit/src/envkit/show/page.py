# SPDX-License-Identifier: Apache-2.0
"""A listing or a story as one page that needs no network, no script and no other file.

Contract: built of `envkit.preflight.markup.el` alone, so text of models and boxes is text; a
content policy forbids the page to load or run anything even so. Long texts are folded, and whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Final

from envkit.preflight.markup import Child, Html, el
from envkit.preflight.page_parts import folded, table
from envkit.preflight.report_html import POLICY
from envkit.preflight.text import seconds
from envkit.show.facts import facts, reward
from envkit.show.facts_turns import visible
from envkit.show.page_turns import text, turn_html
from envkit.show.parts import Share, Story, Stretch
from envkit.show.plain import PROMPT, plain
from envkit.show.rows import Line, Listing, summary

WIDTH: Final = 1000
"""Units of a strip, whatever it is drawn as."""
ROWS: Final = 2000
"""Of a list; the JSON has all."""


def listing_html(listing: Listing) -> str:
    """The list of a run."""
    pairs = summary(listing.lines) if listing.lines else []
    damaged = [el("li", plain(each), class_="bad") for each in listing.damaged]
    head = (
        "trajectory",
        "reward",
        "stop",
        "turns",
        "calls",
        "failed",
        "sampled",
        "tokens",
        "fault",
    )
    shown = listing.lines[:ROWS]
    rest = len(listing.lines) - len(shown)
    return _document(
        "envkit show: trajectories",
        el("h1", listing.title),
        _pairs(pairs),
        el("ul", damaged) if damaged else "",
        table(head, [_row(each) for each in shown], numbers={3, 4, 5, 6, 7}),
        el("p", f"and {rest} more; --json has all", class_="dim") if rest else "",
    )


def _row(line: Line) -> Sequence[Child]:
    worth = "none" if line.reward is None else f"{line.reward:.4g}"
    return (
        plain(line.trajectory_id),
        el("span", worth, "" if line.reward_valid else " invalid", class_=_tone(line.reward_valid)),
        line.stop.value,
        line.turns,
        line.calls,
        line.failed_calls or "",
        f"{line.sampled_tokens:,}",
        f"{line.tokens:,}",
        el("span", plain(line.blamed), class_="bad"),
    )


def _tone(valid: bool) -> str:
    return "good" if valid else "bad"


def story_html(story: Story) -> str:
    """One trajectory."""
    name = plain(story.trajectory.identity.trajectory_id)
    return _document(f"envkit show: {name}", *_story(story, name))


def _story(story: Story, name: str) -> Iterator[Child]:
    outcome = story.trajectory.outcome
    kind = "badge valid" if outcome.reward_valid else "badge"
    yield el("h1", name, " ", el("span", f"reward {reward(outcome)}", class_=kind))
    yield _pairs(list(facts(story)))
    yield [el("p", plain(note), class_="warn") for note in story.notes]
    end = max((each.stop for each in story.course), default=0.0)
    yield from _strip("Time", story.course, end, story.seconds, seconds)
    whole = float(story.trajectory.episode.limits.context_tokens)
    yield from _strip("Context", story.stream, whole, story.tokens, "{:,.0f}".format)
    yield el("h2", "Prompt")
    size = f"{story.prompt_tokens:,} tokens"
    prompt = None if story.prompt is None else text(story.prompt, cut_to=PROMPT)
    yield el("p", size, class_="dim") if prompt is None else folded(size, prompt)
    yield el("h2", "Turns")
    yield [turn_html(each) for each in story.turns]
    if story.unlikely:
        yield el("h2", "Least likely tokens")
        yield table(("turn", "logprob", "token"), list(_unlikely(story)), numbers={0, 1})


def _unlikely(story: Story) -> Iterator[Sequence[Child]]:
    for each in story.unlikely:
        around = (visible(each.before), el("mark", visible(each.token)), visible(each.after))
        yield (
            el("a", each.turn, href=f"#turn-{each.turn}"),
            f"{each.logprob:.2f}",
            el("code", *around),
        )


def _strip(
    title: str,
    stretches: Sequence[Stretch],
    whole: float,
    shares: Sequence[Share],
    said: Callable[[float], str],
) -> Iterator[Html]:
    """What came after what, as long as it was, and what that adds up to."""
    total = sum(each.amount for each in shares)
    if whole <= 0 or not total:
        return
    scale = WIDTH / whole
    rects = [
        el(
            "rect",
            el("title", plain(each.title)),
            x=each.start * scale,
            width=max(0.6, (each.stop - each.start) * scale),
            y=0,
            height=22,
            class_=f"k-{each.kind}",
        )
        for each in stretches
    ]
    box = f"0 0 {WIDTH} 22"
    yield el("h2", title)
    yield el(
        "svg",
        rects,
        class_="strip",
        viewBox=box,
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title} by what it went to",
    )
    yield el("div", [_key(each, total, said) for each in shares], class_="legend")


def _key(share: Share, total: float, said: Callable[[float], str]) -> Html:
    return el(
        "span",
        el("i", class_=f"key k-{share.name.replace(' ', '-')}"),
        f"{share.name} {said(share.amount)} ({100 * share.amount / total:.0f} %)",
    )


def _pairs(pairs: Sequence[tuple[str, str]]) -> Html:
    return el("dl", [(el("dt", label), el("dd", plain(value))) for label, value in pairs])


def _document(title: str, *body: Child) -> str:
    style = files("envkit.show").joinpath("page.css").read_text("utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", title),
        el("style", Html(style)),
    )
    return f"<!doctype html>\n{el('html', head, el('body', el('main', *body)), lang='en')}\n"
