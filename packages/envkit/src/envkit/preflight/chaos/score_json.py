# SPDX-License-Identifier: Apache-2.0
"""A score as JSON: the keys of ``envkit.chaos-score/1`` keep their meaning, more may be added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from envkit.preflight.chaos.row import Row, count
from envkit.preflight.chaos.score import Score

SCHEMA: Final = "envkit.chaos-score/1"

FACTS: Final = ("took", "detected", "owner_right", "class_right", "retried_right", "validity_right")
BREACHES: Final = ("lost", "called_valid", "called_invalid")


def to_json(score: Score) -> dict[str, Any]:
    """The published form."""
    return {
        "schema": SCHEMA,
        "ok": score.ok,
        "faults": _counts(score.faults),
        "controls": _counts(score.controls),
        "untouched": score.untouched,
        "disturbed": list(score.disturbed),
        "unplanned": score.unplanned,
        "leaks": score.leaks,
        "matrix": [
            {"expected": expected, "seen": seen, "count": number}
            for (expected, seen), number in sorted(score.matrix().items())
        ],
        "rows": [_row(row) for row in score.rows],
    }


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    places = {(row.strike.phase, row.strike.kind) for row in rows}
    facts = {fact: count(rows, fact) for fact in (*FACTS, *BREACHES)}
    return {"planned": len(rows), "kinds_and_phases": len(places), **facts}


def _row(row: Row) -> dict[str, Any]:
    return {
        **asdict(row.strike),
        "took": row.took,
        "effect": row.effect,
        "expected": asdict(row.expected),
        "owner": row.owner,
        "class": row.code,
        "retried": row.retried,
        "reward": row.reward,
        "reward_valid": row.reward_valid,
        "final_reward": row.final_reward,
        "final_valid": row.final_valid,
        "right": row.right,
    }
