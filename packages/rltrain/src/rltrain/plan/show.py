# SPDX-License-Identifier: Apache-2.0
"""A plan in a terminal.

Contract: figures only of the plan; what it rests on stands below them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rltrain.plan.advice import advice
from rltrain.plan.assumptions import GIB, flat
from rltrain.plan.plan import Plan, Row

if TYPE_CHECKING:
    from rich.console import Console

HEAD: Final = (
    "split",
    "steps/h",
    "slots",
    "under way",
    "KV holds",
    "trainer",
    "waits",
    "staleness",
    "bias 1-10",
    "lost",
)
TOLD: Final = {
    "split": "inference : training nodes, or trials at once",
    "slots": "trials at once that are asked for and held",
    "trainer": "share of its time in which it works",
    "waits": "in which it waits for a batch",
    "staleness": "mean and most, of the samples that are trained on",
    "bias 1-10": "how much longer samples of the first ten steps are than they should be",
    "lost": "share of the sampled tokens that is not trained on",
}
"""What columns mean."""


def show(plan: Plan, console: Console) -> None:
    """All of it, the sentence last."""
    for line in head(plan):
        console.print(line, markup=False)
    console.print(_table(plan))
    console.print(f"assumed: {assumed(plan)}", markup=False, style="dim")
    console.print(advice(plan), markup=False)


def head(plan: Plan) -> list[str]:
    """Both ceilings, and what they are reckoned by."""
    lines = [f"{plan.asked.name}: {plan.population.source}", memory(plan), ceiling(plan)]
    if plan.asked.published:
        lines.append(published(plan))
    if plan.asked.calibration:
        lines.append(calibration(plan))
    return lines


def memory(plan: Plan) -> str:
    """What KV memory there is."""
    found = plan.own.kv
    state = (
        f" and {found.layout.state / 2**20:.1f} MiB a state of its linear layers"
        if found.layout.state
        else ""
    )
    beside = f"a GPU beside {found.layout.weights / GIB:.1f} of weights"
    if not plan.own.split.cluster.gpus_per_node:
        beside = "an engine"
    return (
        f"KV memory: {found.room / GIB:.1f} GiB {beside}; {found.layout.token / 1024:g} KiB a"
        f" token{state}; {found.engines} engines of {found.tokens:,.0f} tokens. A trajectory has"
        f" {found.live:,.0f} live ones in the mean: {found.ceiling} are held"
        f" ({plan.interval.low} to {plan.interval.high} over what is uncertain),"
        f" {found.sure(plan.asked.tables.rollout.context_tokens)} of full context"
    )


def ceiling(plan: Plan) -> str:
    """What staleness lets be under way."""
    tables = plan.asked.tables
    whole = (
        f"({tables.buffer.staleness} + 1) x {tables.batch.prompts} x {tables.batch.samples} ="
        f" {tables.ceiling}"
    )
    return (
        f"staleness: {whole}, less finished samples of open groups and of the buffer: about"
        f" {plan.staleness} under way"
    )


def published(plan: Plan) -> str:
    """Whether the interval has the published figure."""
    told = plan.asked.published
    assert told is not None
    inside = "contains" if plan.interval.contains(told.concurrency) else "does not contain"
    return (
        f"published: {told.concurrency} trials at once, said to be bound by KV memory. The interval"
        f" {plan.interval.low} to {plan.interval.high} {inside} it; by the likely values that is"
        f" {plan.own.kv.live_of(told.concurrency):,.0f} live tokens a trajectory"
    )


def calibration(plan: Plan) -> str:
    """What was measured, and how far the simulation of it is off."""
    found = plan.asked.calibration
    assert found is not None
    return (
        f"calibrated by {found.run.name}: {found.steps_per_h:.1f} steps/h, {found.running:.1f}"
        f" trials under way, {found.sampling:.1f} of them sampling, the trainer at work"
        f" {found.training:.0%}, everything {found.slow:.2f} times as long as alone; its simulation"
        f" is corrected by {plan.factor:.2f}"
    )


def cells(plan: Plan, row: Row) -> tuple[str, ...]:
    """A row, by `HEAD`."""
    went = row.went
    return (
        row.split.name + (" (recipe)" if row.split.own else ""),
        f"{plan.steps_per_h(row):.2f}",
        f"{row.slots}",
        f"{went.running:.0f} ({went.running / row.split.concurrency:.0%})",
        f"{row.kv.ceiling}",
        f"{went.training:.0%}",
        f"{went.waiting:.0%}",
        f"{went.staleness:.1f}, {went.stalest}",
        f"{went.bias:+.0%}",
        f"{went.lost:.1%}",
    )


def assumed(plan: Plan) -> str:
    """Every assumption, with a mark at what was set."""
    fixed = plan.asked.fixed
    return ", ".join(
        f"{name} {_value(value)}{' (set)' if name in fixed else ''}"
        for name, value in flat(plan.asked.told).items()
    )


def _value(value: object) -> str:
    if value is None:
        return "reckoned"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _table(plan: Plan) -> object:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in HEAD:
        table.add_column(name, justify="left" if name == "split" else "right", no_wrap=True)
    for row in plan.rows:
        table.add_row(*cells(plan, row), style="bold" if row.split.own else None)
    return table
