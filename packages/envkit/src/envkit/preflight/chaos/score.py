# SPDX-License-Identifier: Apache-2.0
"""The injector's log joined with what envkit recorded: was each fault seen as the table says?

Contract: pure reading of a report directory; nothing of a run is judged again. Every strike that
was planned is a row, the ones that never took effect too. Exit 0 only when everything holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from envkit.fault import Fault, HarnessError
from envkit.preflight.chaos import log
from envkit.preflight.chaos.choose import DIRECTORY, PLAN_NAME, Strike, read_chosen
from envkit.preflight.chaos.expected import table
from envkit.preflight.chaos.row import Row
from envkit.preflight.gate import EXPECTED, TOLERANCE
from envkit.trial.record import RECORD_NAME, Attempt, TrialRecord, decided_by

CLEAN: Final = "none"
"""Stands for no class, where nothing is to be blamed or nothing was."""

LOST: Final = "no record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A whole run."""

    rows: tuple[Row, ...]
    untouched: int
    """Trials that nothing struck."""
    disturbed: tuple[str, ...]
    """Of these, the ones in which anything went wrong all the same."""
    unplanned: int
    """Lines of the log that no plan asked for."""
    leaks: int

    @property
    def ok(self) -> bool:
        """Whether all of it holds."""
        sound = all(row.right for row in self.rows) and not self.disturbed
        return bool(self.rows) and sound and not self.unplanned and not self.leaks

    @property
    def faults(self) -> tuple[Row, ...]:
        """Strikes that somebody must be blamed for, and not the model."""
        return tuple(row for row in self.rows if not row.control)

    @property
    def controls(self) -> tuple[Row, ...]:
        """Strikes that must cost nothing: what the model did itself, and what is merely slow."""
        return tuple(row for row in self.rows if row.control)

    def matrix(self) -> Mapping[tuple[str, str], int]:
        """(class expected, class seen) → strikes that took effect."""
        pairs = ((row.expected.code or CLEAN, row.code or CLEAN) for row in self.rows if row.took)
        return Counter(pairs)


def score(directory: Path) -> Score:
    """Scores the report directory of a chaos run.

    Raises:
        HarnessError: it is none, or its files cannot be read.
    """
    chosen = read_chosen(directory / DIRECTORY / PLAN_NAME)
    try:
        done = log.read(directory / DIRECTORY / log.LOG_NAME)
        records = _records(directory / "trials")
        report = orjson.loads((directory / "report.json").read_bytes())
        leaks = sum(report["leaks"].values())
        if report["run_token"] != chosen.run:
            raise ValueError("its report and its plan of chaos are of two runs")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarnessError(
            f"{directory}: what the run left cannot be read: {error}; run it again with --report"
        ) from error
    rows = [_row(strike, done, records.get(strike.trial)) for strike in chosen.strikes]
    struck = {strike.trial for strike in chosen.strikes}
    planned = {(s.trial, s.attempt, s.kind, s.phase) for s in chosen.strikes}
    left = {name: record for name, record in records.items() if name not in struck}
    return Score(
        rows=tuple(rows),
        untouched=len(left),
        disturbed=tuple(sorted(name for name, record in left.items() if _disturbed(record))),
        unplanned=sum((d.trial, d.attempt, d.kind, d.phase) not in planned for d in done),
        leaks=leaks,
    )


def _records(trials: Path) -> dict[str, TrialRecord]:
    found: dict[str, TrialRecord] = {}
    for path in trials.glob(f"*/{RECORD_NAME}"):
        data: dict[str, Any] = orjson.loads(path.read_bytes())
        record = TrialRecord.from_dict(data)
        found[record.trial_id] = record
    return found


def _row(strike: Strike, done: Sequence[log.Done], record: TrialRecord | None) -> Row:
    own = [d for d in done if (d.trial, d.attempt) == (strike.trial, strike.attempt)]
    took = next((d for d in own if d.took), None)
    struck = _attempt(record, strike.attempt)
    fault = _decisive(struck)
    blamed = (fault.owner.value, fault.code) if fault else ("", "")
    owner, code = blamed if struck else ("", LOST)
    return Row(
        strike=strike,
        expected=table()[strike.phase, strike.kind],
        took=took is not None and len(own) == 1,
        effect=took.effect if took else (own[0].effect if own else "it never came to that"),
        owner=owner,
        code=code,
        retried=record is not None and len(record.attempts) > strike.attempt,
        reward=struck.reward if struck else None,
        reward_valid=bool(struck and struck.reward_valid),
        final_reward=record.reward if record else None,
        final_valid=bool(record and record.reward_valid),
        full=EXPECTED.get(record.agent) if record else None,
    )


def _attempt(record: TrialRecord | None, number: int) -> Attempt | None:
    attempts = record.attempts if record else ()
    return next((each for each in attempts if each.number == number), None)


def _decisive(attempt: Attempt | None) -> Fault | None:
    """What decided, or what stands there beside a reward that it did not cost."""
    if attempt is None:
        return None
    return decided_by(attempt.faults) or next(iter(attempt.faults), None)


def _disturbed(record: TrialRecord) -> bool:
    full, last = EXPECTED.get(record.agent), record.attempts[-1]
    clean = len(record.attempts) == 1 and not last.faults and record.reward_valid
    earned = full is None or abs((record.reward or 0.0) - full) <= TOLERANCE
    return not (clean and earned)
