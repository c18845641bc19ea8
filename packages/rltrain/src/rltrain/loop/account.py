# SPDX-License-Identifier: Apache-2.0
"""What the scheduler decided and why, as lines that outlive a kill, and as numbers of a step.

Contract: every group that was begun is in the file until it was trained on or dropped, and every
attempt that was given up, with its reason. Lines of a lineage that died are left there and told
apart by its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

import orjson

from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import (
    Admit,
    Again,
    Against,
    Batch,
    Cancel,
    CloseShort,
    Decision,
    DropGroup,
    Leave,
    Mean,
    Start,
    Wait,
)

DECISIONS: Final = "decisions.jsonl"
"""In a run's directory."""
NAN: Final = float("nan")
_NAMES: Final[Mapping[type[Any], str]] = {
    Admit: "admit",
    Start: "start",
    Again: "again",
    Leave: "leave",
    Cancel: "cancel",
    CloseShort: "close_short",
    DropGroup: "drop",
    Batch: "batch",
    Wait: "wait",
}


class Account:
    """The file; and what of a scheduler's is a number of a step."""

    def __init__(self, root: Path, lineage: int) -> None:
        self._lineage = lineage
        self._file = (root / DECISIONS).open("ab")
        self._before: dict[str, int] = {}

    def note(self, decision: Decision, at_s: float) -> None:
        """One decision."""
        line = {
            "lineage": self._lineage,
            "at_s": round(at_s, 3),
            "decision": _NAMES[type(decision)],
            **asdict(decision),
        }
        self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        if isinstance(decision, (Batch, DropGroup)):
            self._file.flush()

    def rates(self, scheduler: Scheduler) -> dict[str, float]:
        """Of attempts that have ended since this was last asked."""
        outcomes: dict[str, int] = {**scheduler.ledger.outcomes}
        ended = {name: count - self._before.get(name, 0) for name, count in outcomes.items()}
        self._before = outcomes
        counted = sum(count for name, count in ended.items() if name != "cancelled")
        return {
            "rollout/ended": sum(ended.values()),
            "rollout/fault_rate": ended.get("fault", 0) / counted if counted else NAN,
            "rollout/own_rate": ended.get("own", 0) / counted if counted else NAN,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()


def figures(scheduler: Scheduler, batch: Batch) -> dict[str, float]:
    """Of a step: how old its samples are, how it differs from the population, what was waited for
    and lost so far."""
    ages = [age for group in batch.groups for age in group.staleness]
    ledger, ceiling = scheduler.ledger, scheduler.ceiling
    return {
        "staleness/mean": sum(ages) / len(ages) if ages else NAN,
        "staleness/max": max(ages, default=NAN),
        **_against(batch.against),
        "buffer/buffered": scheduler.buffered,
        "buffer/running": ceiling.running,
        "buffer/waited_s": ledger.waited_s,
        "buffer/idle_slot_s": ledger.idle_slot_s,
        "buffer/started": ledger.started,
        "buffer/trained": ledger.trained,
        "buffer/groups_short": ledger.groups_short,
        **{f"buffer/lost_{reason}": count for reason, count in ledger.lost.items()},
        **{f"buffer/dropped_{reason}": count for reason, count in ledger.groups_dropped.items()},
        **{f"buffer/tokens_lost_{reason}": n for reason, n in ledger.tokens_lost.items()},
    }


def _against(against: Against) -> dict[str, float]:
    return {
        "bias/tokens": _number(against.tokens),
        "bias/reward": _number(against.reward),
        "bias/difficulty": _number(against.difficulty),
    }


def _number(mean: Mean) -> float:
    bias = mean.bias
    return NAN if bias is None else bias
