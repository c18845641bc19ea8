# SPDX-License-Identifier: Apache-2.0
"""A listing and a story on a terminal.

Contract: text of models and boxes is printed as plain characters. Long texts are cut with how much
of them is missing, unless all is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from envkit.preflight.columns import columns
from envkit.preflight.text import count, one_line, seconds
from envkit.show.facts import facts, reward
from envkit.show.facts_turns import arguments, blocks, cut, outcome, turn_facts, visible
from envkit.show.parts import Call, Share, Story, Told, Turn
from envkit.show.plain import PROMPT, USUAL, Cut, plain, shorten
from envkit.show.rows import Line, Listing, summary
from envkit.trajectory.types import ParseFault, Stop

ROWS_SHOWN: Final = 200
"""Of a list; the JSON has all."""
COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prompt": "bright_black",
        "model": "blue",
        "tool": "yellow",
        "harness": "magenta",
        "free": "default",
        "first token": "cyan",
        "between": "bright_black",
    }
)
_BLOCKS: Final = MappingProxyType({"free": "·"})


def print_listing(listing: Listing, console: Console) -> None:
    """The list; what they come to together last, where the eye is."""
    if listing.lines:
        console.print(_table(listing.lines[:ROWS_SHOWN]))
    if len(listing.lines) > ROWS_SHOWN:
        console.print(Text(f"and {len(listing.lines) - ROWS_SHOWN} more; --json has all"))
    console.print()
    for each in listing.damaged:
        console.print(Text(f"damaged  {one_line(each, 400)}", style="red"))
    console.print(Text(listing.title, style="bold"))
    if listing.lines:
        console.print(_pairs(summary(listing.lines)))
        console.print(Text("one of them turn by turn: --id ID", style="dim"))


def _table(lines: tuple[Line, ...]) -> Table:
    table = columns(
        "trajectory",
        "reward",
        "turns",
        "calls",
        "failed",
        "sampled",
        "tokens",
        left=("stop", "fault"),
    )
    for each in lines:
        table.add_row(
            Text(one_line(each.trajectory_id, 120)),
            _reward(each),
            str(each.turns),
            str(each.calls),
            str(each.failed_calls or ""),
            f"{each.sampled_tokens:,}",
            f"{each.tokens:,}",
            Text(each.stop.value, style=_STOPS.get(each.stop, "")),
            Text(one_line(each.blamed, 60)),
        )
    return table


_STOPS: Final = MappingProxyType({Stop.FAULT: "red", Stop.FINAL: "green"})


def _reward(line: Line) -> Text:
    if line.reward is None:
        return Text("none", style="red")
    valid = line.reward_valid
    return Text(f"{line.reward:.3g}{'' if valid else ' invalid'}", style="" if valid else "red")


def _pairs(pairs: list[tuple[str, str]]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in pairs:
        table.add_row(label, Text(one_line(value, 1000)))
    return table


def print_story(story: Story, console: Console, *, full: bool = False) -> None:
    """A story from its head to what was unlikely in it."""
    for part in _story(story, full):
        console.print(part)


def _story(story: Story, full: bool) -> Iterator[RenderableType]:
    outcome = story.trajectory.outcome
    style = "bold green" if outcome.reward_valid else "bold red"
    name = one_line(story.trajectory.identity.trajectory_id, 100)
    yield Text.assemble((name, "bold"), "  reward ", (reward(outcome), style))
    yield _pairs(list(facts(story)))
    for note in story.notes:
        yield Text(one_line(note, 300), style="yellow")
    yield Text()
    yield _Bar("time", story.seconds, seconds)
    yield _Bar("context", story.tokens, "{:,.0f}".format)
    yield Text()
    yield _head("prompt", f"{story.prompt_tokens:,} tokens")
    if story.prompt is not None:
        yield _text(story.prompt, "dim", full, cut_to=PROMPT)
    for turn in story.turns:
        yield from _turn(turn, full)
    yield from _end(story)


def _head(title: str, said: str) -> Text:
    return Text.assemble((f"── {title} ", "bold"), (f"── {said}", "dim"))


def _turn(turn: Turn, full: bool) -> Iterator[RenderableType]:
    yield Text()
    yield _head(f"turn {turn.number}", ", ".join(turn_facts(turn)))
    if turn.faults and turn.text is not None:
        yield _text(turn.text, "", full)
    else:
        for said, style in ((turn.thinking, "dim italic"), (turn.content, "")):
            if said:
                yield _text(said, style, full)
    for fault in turn.faults:
        yield _fault(fault)
    for call in turn.calls:
        yield from _call(call, full)
    if turn.observed is not None and not any(call.result for call in turn.calls):
        yield _text(turn.observed, "yellow", full)
    if turn.observed_tokens:
        yield Text(f"   observed {count(turn.observed_tokens, 'token')}", style="dim")
    for told in turn.told:
        yield _told(told, full)


def _fault(fault: ParseFault) -> Text:
    return Text(f"   cannot be read: {fault.code}", style="red")


def _call(call: Call, full: bool) -> Iterator[RenderableType]:
    record = call.record
    yield Text.assemble(
        "   → ",
        (one_line(record.name, 100), "bold"),
        f"({arguments(call)})  ",
        (one_line(outcome(call)), "green" if record.ok else "red"),
        (f" in {seconds(record.seconds)}", "dim"),
    )
    for key, said in blocks(call):
        yield Text(f"      {one_line(plain(key), 60)}:", style="dim")
        yield _text(said, "cyan", full, left=8)
    if call.result is not None:
        yield _text(call.result, "yellow" if record.ok else "red", full, left=6)
    if record.cut_tokens:
        yield Text(f"      {cut(call)}", style="dim")


def _told(told: Told, full: bool) -> RenderableType:
    size = "in the observation" if told.tokens is None else count(told.tokens, "token")
    head = Text(f"   harness adds a {told.what} ({size}, not trained)", style="magenta")
    return Group(head, _text(told.text, "magenta", full, left=6)) if told.text else head


def _text(
    text: str, style: str, full: bool, *, left: int = 3, cut_to: Cut = USUAL
) -> RenderableType:
    """A text that begins to the right of ours, however it is folded."""
    if full:
        return Padding(Text(plain(text).strip("\n"), style=style), (0, 0, 0, left))
    short = shorten(plain(text), cut_to)
    parts = [Text(short.head, style=style)]
    if short.left_out:
        parts += [
            Text(f"… {short.left_out} not shown here; --full shows all …", style="dim"),
            Text(short.tail, style=style),
        ]
    return Padding(Group(*parts), (0, 0, 0, left))


def _end(story: Story) -> Iterator[RenderableType]:
    if story.unlikely:
        yield Text()
        yield _head("least likely tokens", "by logprob")
        table = columns("turn", "logprob", left=("token",))
        for each in story.unlikely:
            token = Text.assemble(
                (visible(each.before), "dim"),
                "⟦",
                (visible(each.token), "bold"),
                "⟧",
                (visible(each.after), "dim"),
            )
            table.add_row(str(each.turn), f"{each.logprob:.2f}", token)
        yield table


class _Bar:
    """A line of blocks, each share as long as it is large, and what they are."""

    def __init__(self, name: str, shares: tuple[Share, ...], said: Callable[[float], str]) -> None:
        self._name, self._shares, self._said = name, shares, said

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = sum(each.amount for each in self._shares)
        if not whole:
            return
        width = max(20, min(60, options.max_width - 20))
        line = Text(f"{self._name:<9}", style="dim")
        edge = 0.0
        for each in self._shares:
            cells = round((edge + each.amount) / whole * width) - round(edge / whole * width)
            line.append(_BLOCKS.get(each.name, "█") * cells, style=COLOURS[each.name])
            edge += each.amount
        yield line
        legend = Text(" " * 9)
        for each in self._shares:
            legend.append(_BLOCKS.get(each.name, "█"), style=COLOURS[each.name])
            legend.append(f" {each.name} ")
            legend.append(
                f"{self._said(each.amount)} ({100 * each.amount / whole:.0f} %)  ", style="dim"
            )
        yield legend
