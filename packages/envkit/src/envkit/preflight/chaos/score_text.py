# SPDX-License-Identifier: Apache-2.0
"""A score for a person: the counts, the confusion matrix, and each row that is not right."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envkit.preflight.chaos.row import Row, count
from envkit.preflight.chaos.score import Score

_FACTS = {
    "took": "took effect",
    "detected": "detected, or rightly not",
    "owner_right": "owner right",
    "class_right": "class right",
    "retried_right": "run again as the table says",
    "validity_right": "reward as the table says",
    "lost": "rewards lost",
    "called_valid": "invalid rewards called valid",
    "called_invalid": "valid rewards called invalid",
}


def print_score(score: Score, console: Console) -> None:
    """The whole score."""
    console.print(_counts(score))
    _say(console, f"{len(score.disturbed)} of {score.untouched} trials not struck were disturbed")
    _say(console, f"{score.leaks} things were left behind")
    console.print(_matrix(score))
    for row in score.rows:
        if not row.right:
            _say(console, _wrong(row))
    for name in score.disturbed:
        _say(console, f"disturbed  {name}")
    if score.unplanned:
        _say(console, f"{score.unplanned} lines of the injector's log are in no plan")
    _say(console, "PASS" if score.ok else "FAIL")


def _counts(score: Score) -> Table:
    shown = Table("", "faults", "controls", box=None, pad_edge=False)
    groups = (score.faults, score.controls)
    places = [len({(row.strike.phase, row.strike.kind) for row in rows}) for rows in groups]
    shown.add_row("planned", *(str(len(rows)) for rows in groups))
    shown.add_row("of so many kinds and phases", *map(str, places))
    for fact, words in _FACTS.items():
        shown.add_row(words, *(str(count(rows, fact)) for rows in groups))
    return shown


def _matrix(score: Score) -> Table:
    """Sparse: one line for each pair of classes that occurred."""
    shown = Table("class expected", "class seen", "", box=None, pad_edge=False)
    for (expected, seen), number in sorted(score.matrix().items()):
        mark = "" if expected == seen else "  wrong"
        shown.add_row(expected, seen, f"{number}{mark}")
    return shown


def _wrong(row: Row) -> str:
    strike, want = row.strike, row.expected
    head = f"{strike.trial} {strike.kind} in {strike.phase}"
    if not row.took:
        return f"{head}: took no effect: {row.effect}"
    return (
        f"{head}: {_told(want.owner, want.code, want.retried)}, reward {want.reward} is right; "
        f"seen was {_told(row.owner, row.code, row.retried)}, "
        f"reward {row.reward} {'valid' if row.reward_valid else 'invalid'}, "
        f"in the end {row.final_reward} {'valid' if row.final_valid else 'invalid'}"
    )


def _told(owner: str, code: str, retried: bool) -> str:
    return f"{owner or 'nobody'} {code or 'nothing'}{' run again' if retried else ''}"


def _say(console: Console, line: str) -> None:
    console.print(Text(line), soft_wrap=True)
