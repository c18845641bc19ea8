# SPDX-License-Identifier: Apache-2.0
"""Which trial each fault strikes.

Contract: the same rules and the same trials give the same strikes, whatever order things happen
in; a trial is struck at most once, in its first attempt, so that what follows has one cause.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import orjson

from envkit.fault import HarnessError
from envkit.preflight.chaos.rules import Rules, Wanted

SCHEMA: Final = "envkit.chaos/1"
PLAN_NAME: Final = "plan.json"
DIRECTORY: Final = "chaos"
"""Of a report directory: the plan, and beside it what the injector did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One fault that is to meet one trial."""

    trial: str
    kind: str
    phase: str
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Every strike of a run."""

    run: str
    """The run's token: a plan is scored with the report of the same run only."""
    seed: int
    hang_s: float
    strikes: tuple[Strike, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, with the schema name."""
        return {"schema": SCHEMA, **asdict(self)}


def choose(rules: Rules, trials: Sequence[tuple[str, str]], run: str) -> Chosen:
    """Picks a trial, out of (id, task) pairs, for every fault that is wanted.

    Raises:
        HarnessError: there are fewer trials than faults.
    """
    taken: dict[str, Strike] = {}
    for number, wanted in enumerate(rules.wanted):
        free = [name for name, task in trials if name not in taken and _fits(task, wanted)]
        for trial in _pick(free, wanted, f"{rules.seed}:{number}"):
            taken[trial] = Strike(trial=trial, kind=wanted.kind, phase=wanted.phase)
    ordered = tuple(taken[name] for name, _ in trials if name in taken)
    return Chosen(run=run, seed=rules.seed, hang_s=rules.hang_s, strikes=ordered)


def _fits(task: str, wanted: Wanted) -> bool:
    return fnmatchcase(task, wanted.task)


def _pick(free: list[str], wanted: Wanted, salt: str) -> Iterator[str]:
    drawn = sorted((_draw(f"{salt}:{trial}"), trial) for trial in free)
    if wanted.count is None:
        yield from (trial for draw, trial in drawn if draw < wanted.rate)
        return
    if wanted.count > len(drawn):
        raise HarnessError(
            f"--chaos: {wanted.count} x {wanted.kind} in {wanted.phase} are wanted and "
            f"{len(drawn)} trials are left; raise --repeat, or lower a count"
        )
    yield from (trial for _, trial in drawn[: wanted.count])


def _draw(text: str) -> float:
    """A number from 0 up to 1 that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / 2**64


def write_chosen(path: Path, chosen: Chosen) -> None:
    """Leave it where the launcher and the score read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(chosen.to_dict(), option=orjson.OPT_INDENT_2))


def read_chosen(path: Path) -> Chosen:
    """Read back `write_chosen`.

    Raises:
        HarnessError: it is not there, or not of this version.
    """
    try:
        data = orjson.loads(path.read_bytes())
        if data.pop("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        data["strikes"] = tuple(Strike(**each) for each in data["strikes"])
        return Chosen(**data)
    except OSError as error:
        raise HarnessError(
            f"{path}: {error.strerror}: no plan of a chaos run; name the --report directory of one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise HarnessError(
            f"{path}: no plan of a chaos run ({error}); name the --report directory of one"
        ) from error
