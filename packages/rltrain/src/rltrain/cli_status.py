# SPDX-License-Identifier: Apache-2.0
"""``rltrain status``: where a run stands, in a few lines or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rltrain.cli_edge import edge

if TYPE_CHECKING:
    from rltrain.loop.status import Status


def status(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one JSON document.")] = False,
) -> None:
    """Say where a run stands, whether it goes on or not.

    Exits 0 where it goes on or has taken all its steps, 1 where it stopped before that.
    """
    with edge():
        from rltrain.loop.status import status_of

        found = status_of(run)
        if as_json:
            print(json.dumps(plain(found)))
        else:
            print(*lines(found), sep="\n")
    raise typer.Exit(0 if found.running or _done(found) else 1)


def lines(found: Status) -> Iterator[str]:
    """For a person."""
    from rltrain.loop.evaluation import best as best_of
    from rltrain.loop.evaluation import line_of

    step = found.last.step if found.last else 0
    state = "running" if found.running else "done" if _done(found) else "stopped"
    yield f"{found.root}: {state}, step {step}{_of(found)}, begun {found.manifest.started}"
    if found.seconds_ago is not None:
        rate = f", {found.steps_per_h:.1f} steps/h" if found.steps_per_h else ""
        yield f"last step {found.seconds_ago:,.0f} s ago{rate}"
    if found.last is not None:
        yield from _numbers(found)
    if found.lineages > 1:
        yield f"gone on with {found.lineages - 1} times"
    for each in found.evaluations:
        yield line_of(each, found.evaluations[0])
    if best := best_of(found.evaluations):
        yield f"the best of them: after {best.step} steps"
    kept = ", ".join(str(each.step) for each in found.checkpoints) or "none yet"
    yield f"checkpoints after steps {kept}"
    if not found.running and not _done(found):
        yield f"go on: rltrain fit --resume {found.root}"


def plain(found: Status) -> dict[str, Any]:
    """As JSON has it."""
    numbers: dict[str, float | None] = dict(found.last.numbers) if found.last else {}
    return {
        "run": str(found.root),
        "state": "running" if found.running else "done" if _done(found) else "stopped",
        "step": found.last.step if found.last else 0,
        "steps": _steps(found),
        "seconds_ago": found.seconds_ago,
        "steps_per_h": found.steps_per_h,
        "lineages": found.lineages,
        "checkpoints": [each.step for each in found.checkpoints],
        "evaluations": [
            {
                "step": each.step,
                "reward": each.scores.mean("as_zero"),
                "reward_of_valid": _finite(each.scores.mean("excluded")),
                "invalid_share": each.scores.invalid_share,
            }
            for each in found.evaluations
        ],
        "numbers": numbers,
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _steps(found: Status) -> int:
    """That were asked for; 0 where epochs decide."""
    return found.settings.run.steps


def _of(found: Status) -> str:
    return f" of {_steps(found)}" if _steps(found) else ""


def _done(found: Status) -> bool:
    return bool(found.last and _steps(found) and found.last.step >= _steps(found))


def _numbers(found: Status) -> Iterator[str]:
    assert found.last is not None
    numbers = found.last.numbers

    def shown(name: str, form: str) -> str:
        value = numbers.get(name)
        return "not measured" if value is None else format(value, form)

    yield (
        f"reward {shown('reward/mean', '.3f')} (faults {shown('reward/fault_share', '.0%')},"
        f" {shown('reward/low', '.3f')} to {shown('reward/high', '.3f')}), entropy"
        f" {shown('loss/entropy', '.2f')}, gate {shown('gate/mean', '.1e')}, staleness"
        f" {shown('staleness/max', '.0f')} at most"
    )
