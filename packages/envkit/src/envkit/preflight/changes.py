# SPDX-License-Identifier: Apache-2.0
"""What got slower or worse from one run to the next, told from chance.

Contract: pure. Times, CPU and memory are compared by a rank test within each task at each
concurrency, rewards by task and the share of faulted attempts by Fisher's exact test. All tests of
a comparison are adjusted together (Holm): where nothing differs, at most one comparison in twenty
names anything. A machine that was busier on that day differs as well, and no statistic can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

from envkit.preflight.outcomes import Outcome
from envkit.preflight.significance import (
    Stratum,
    fisher,
    holm,
    rank_test,
    ratio_of_medians,
    strata,
)
from envkit.preflight.types import PHASES, Change, Interval

ALPHA: Final = 0.05
FLOOR_S: Final = 0.01
"""Times below count as this one: nobody waits for ten milliseconds of a trial."""
FLOOR_MIB: Final = 1.0
NEGLIGIBLE: Final = 0.02
"""A fraction: a ratio nearer to 1 is no change, however sure it is."""
NO_RATIO: Final = Interval(value=None, low=None, high=None)

type Measure = Callable[[Outcome], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    before: Sequence[Outcome]
    now: Sequence[Outcome]

    def of(self, measure: Measure) -> list[Stratum]:
        """What both sides measured, by task and concurrency."""
        return strata(_by_kind(self.before, measure), _by_kind(self.now, measure))


def changes(before: Sequence[Outcome], now: Sequence[Outcome]) -> tuple[Change, ...]:
    """Every measure that both runs have, at the concurrencies that both have."""
    shared = {row.concurrency for row in before} & {row.concurrency for row in now}
    sides = _Sides(
        before=[row for row in before if row.concurrency in shared],
        now=[row for row in now if row.concurrency in shared],
    )
    found = [*_times(sides), *_resources(sides), *_faults(sides), *_rewards(sides)]
    adjusted = holm([change.p for change in found])
    return tuple(_judged(change, p) for change, p in zip(found, adjusted, strict=True))


def _times(sides: _Sides) -> Iterator[Change]:
    yield from _compared("trial", "s", sides.of(lambda row: row.seconds), FLOOR_S)
    names = {name for row in (*sides.before, *sides.now) for name in row.phases}
    for name in (*(p for p in PHASES if p in names), *sorted(names - set(PHASES))):
        yield from _compared(name, "s", sides.of(_phase(name)), FLOOR_S)


def _phase(name: str) -> Measure:
    return lambda row: row.phases.get(name)


def _resources(sides: _Sides) -> Iterator[Change]:
    yield from _compared("CPU", "CPU s", sides.of(lambda row: row.cpu_s), FLOOR_S)
    memory = sides.of(lambda row: row.memory_mib or None)
    yield from _compared("memory", "MiB", memory, FLOOR_MIB)


def _compared(measure: str, unit: str, pairs: Sequence[Stratum], floor: float) -> Iterator[Change]:
    """One row, where both sides measured it."""
    before = [value for pair in pairs for value in pair.before]
    now = [value for pair in pairs for value in pair.now]
    if not before:
        return
    yield _change(
        measure=measure,
        unit=unit,
        before=median(before),
        now=median(now),
        n_before=len(before),
        n_now=len(now),
        ratio=ratio_of_medians(pairs, floor),
        p=rank_test(pairs),
    )


def _faults(sides: _Sides) -> Iterator[Change]:
    bad = [sum(row.faulted for row in side) for side in (sides.before, sides.now)]
    n = [sum(row.attempts for row in side) for side in (sides.before, sides.now)]
    if all(n):
        yield _change(
            measure="faults",
            before=bad[0] / n[0],
            now=bad[1] / n[1],
            n_before=n[0],
            n_now=n[1],
            p=fisher(bad[0], n[0], bad[1], n[1]),
        )


def _rewards(sides: _Sides) -> Iterator[Change]:
    before, now = (_valid_by_task(side) for side in (sides.before, sides.now))
    for task in sorted(before.keys() & now.keys()):
        was, earned = before[task], now[task]
        yield _change(
            measure=f"reward of {task}",
            before=fmean(was),
            now=fmean(earned),
            n_before=len(was),
            n_now=len(earned),
            p=_reward_p(was, earned),
        )


def _reward_p(was: Sequence[float], earned: Sequence[float]) -> float:
    if {*was, *earned} <= {0.0, 1.0}:
        return fisher(round(sum(was)), len(was), round(sum(earned)), len(earned))
    return rank_test([Stratum(before=tuple(was), now=tuple(earned))])


def _change(
    *,
    measure: str,
    before: float,
    now: float,
    n_before: int,
    n_now: int,
    p: float,
    unit: str = "",
    ratio: Interval = NO_RATIO,
) -> Change:
    return Change(
        measure=measure,
        unit=unit,
        before=before,
        now=now,
        n_before=n_before,
        n_now=n_now,
        ratio=ratio,
        p=p,
        p_adjusted=1.0,
        verdict="same",
    )


def _judged(change: Change, adjusted: float) -> Change:
    return replace(change, p_adjusted=adjusted, verdict=_verdict(change, adjusted))


def _verdict(change: Change, adjusted: float) -> str:
    """More is worse of everything but rewards."""
    ratio = change.ratio.value
    rise = change.now - change.before if ratio is None else ratio - 1
    if adjusted >= ALPHA or rise == 0 or (ratio is not None and abs(rise) < NEGLIGIBLE):
        return "same"
    return "worse" if (rise > 0) is not change.measure.startswith("reward of ") else "better"


def _by_kind(rows: Sequence[Outcome], measure: Measure) -> dict[Hashable, list[float]]:
    found: dict[Hashable, list[float]] = {}
    for row in rows:
        if (value := measure(row)) is not None:
            found.setdefault((row.task, row.concurrency), []).append(value)
    return found


def _valid_by_task(rows: Sequence[Outcome]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.reward is not None:
            found.setdefault(row.task, []).append(row.reward)
    return found
