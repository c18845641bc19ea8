# SPDX-License-Identifier: Apache-2.0
"""``nox -s fit-demo``, run and judged by the files that it leaves:
``python -m nox -s bench -- fit_demo --nox PYTHON`` (an interpreter that has nox).

Held is: at least 30 updates, fully asynchronous; at least two weight updates that came into the
middle of a trajectory's tokens; the mean reward of 32 tasks x 8 samples rises from 0.1 to 0.6, the
95 % interval of the difference paired by task excludes no change, with invalid trials as 0 and
without them; a control with a learning rate of 0 shows no such rise; engine and trainer differ by
less than 1e-3 in the mean after every sync, and what was sampled before any swap re-scores to 1e-4
under the weights that sampled it; all in under 20 minutes, environments made before.

``--from DIR`` judges what is there and runs nothing; ``--overfit RUN`` puts the verdict of a run of
``rltrain overfit`` beside it, which must have passed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from parts.machine import machine

from envkit.trajectory.store import Store
from envkit.trajectory.types import Kind, Trajectory
from rltrain.evaluate.scores import Scores, difference

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks/results/fit_demo.json"
PLACE = ROOT / "envkit-reports/fit-demo"
MINUTES, UPDATES, SWAPS = 20, 30, 2
START = (0.1, 0.6)
GATE, RESCORED = 1e-3, 1e-4
COUNTINGS: tuple[Literal["as_zero", "excluded"], ...] = ("as_zero", "excluded")
LONGEST_S = 7200


def main() -> int:
    parser = argparse.ArgumentParser(description="nox -s fit-demo, run and judged")
    parser.add_argument("--nox", type=Path)
    parser.add_argument("--from", dest="there", type=Path)
    parser.add_argument("--seconds", type=float, help="what the run that is there took")
    parser.add_argument("--overfit", type=Path)
    asked = parser.parse_args()
    seconds = asked.seconds if asked.there else ran(asked.nox)
    place: Path = asked.there or PLACE
    result: dict[str, Any] = {
        "what": "nox -s fit-demo: the tiny policy trained on tasks/tiny while it is sampled",
        "command": "python -m nox -s bench -- fit_demo --nox PYTHON",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": seconds and round(seconds, 1),
        "trained": run_of(place / "trained"),
        "control": run_of(place / "control"),
        "overfit": overfit_of(asked.overfit) if asked.overfit else None,
    }
    result["breaches"] = [*breaches(result)]
    RESULT.write_text(json.dumps(rounded(result)) + "\n")
    print("\n".join(told(result)))
    print(f"{'BREACHED' if result['breaches'] else 'holds'}: {RESULT.relative_to(ROOT)}")
    return 1 if result["breaches"] else 0


def ran(python: Path | None) -> float:
    """The session, whole; its seconds."""
    if python is None:
        raise SystemExit("give --nox PYTHON, an interpreter that has nox, or --from DIR")
    began = time.monotonic()
    command = [python, "-m", "nox", "-s", "fit-demo"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=LONGEST_S)
    return time.monotonic() - began


def run_of(root: Path) -> dict[str, Any]:
    """One run by its files."""
    steps = [json.loads(line) for line in (root / "metrics.jsonl").read_text().splitlines()]
    evaluations = json.loads((root / "evaluations.json").read_text())
    scores = [Scores(rewards=each["rewards"]) for each in evaluations]
    rises = {
        counting: {
            name: getattr(difference(scores[0], scores[-1], counting), name)
            for name in ("mean", "low", "high", "tasks")
        }
        for counting in COUNTINGS
    }
    return {
        "updates": len(steps),
        "before": scores[0].mean("as_zero"),
        "after": scores[-1].mean("as_zero"),
        "rise": rises,
        "swaps": swaps_of(root),
        "seconds": steps[-1]["time"] - steps[0]["time"] if len(steps) > 1 else None,
        "evaluations": evaluations,
        "steps": steps,
    }


def swaps_of(root: Path) -> dict[str, Any]:
    """Weight updates inside what was sampled to train on: rows, and which versions came in."""
    inside, inside_turn, rows = Counter[int](), Counter[int](), Counter[int]()
    for row in stored(root):
        versions = row.episode.stream.weight_version[row.episode.stream.loss_mask]
        changes = [*changed(versions)]
        rows[len(changes)] += 1
        inside.update(changes)
        for each in row.episode.stream.segments:
            if each.kind is Kind.MODEL:
                turn = row.episode.stream.weight_version[each.start : each.stop]
                inside_turn.update(changed(turn))
    return {
        "rows_by_swaps": dict(sorted(rows.items())),
        "syncs_inside_trajectories": len(inside),
        "syncs_inside_turns": len(inside_turn),
        "rows_by_sync": dict(sorted(inside.items())),
        "turns_by_sync": dict(sorted(inside_turn.items())),
    }


def stored(root: Path) -> Iterator[Trajectory]:
    """What was sampled to be trained on, and not to be evaluated by."""
    for store in root.glob("nodes/*/trajectories"):
        for row in Store(store).scan():
            if not isinstance(row, Trajectory):
                raise SystemExit(f"{store}: {row}")
            if not row.identity.trajectory_id.startswith("eval-"):
                yield row


def changed(versions: np.ndarray) -> Iterator[int]:
    """Versions that others were followed by, among a trajectory's sampled tokens."""
    places = np.flatnonzero(np.diff(versions)) + 1
    yield from versions[places].tolist()


def overfit_of(root: Path) -> dict[str, Any]:
    """The verdict and the numbers of its steps."""
    steps = [json.loads(line) for line in (root / "metrics.jsonl").read_text().splitlines()]
    verdict = json.loads((root / "overfit.json").read_text())
    evaluations = json.loads((root / "evaluations.json").read_text())
    return {"verdict": verdict, "steps": steps, "evaluations": evaluations}


def breaches(result: dict[str, Any]) -> Iterator[str]:
    """What does not hold."""
    trained, control, seconds = result["trained"], result["control"], result["seconds"]
    if seconds is None or seconds > MINUTES * 60:
        yield f"took {seconds} s, {MINUTES} minutes are allowed"
    if trained["updates"] < UPDATES:
        yield f"{trained['updates']} updates, {UPDATES} are wanted"
    if not any((each.get("staleness/max") or 0) > 0 for each in trained["steps"]):
        yield "no sample was older than the weights that were trained: that is not asynchronous"
    if trained["swaps"]["syncs_inside_trajectories"] < SWAPS:
        yield f"{trained['swaps']['syncs_inside_trajectories']} syncs came into trajectories"
    if not START[0] <= trained["before"] <= START[1]:
        yield f"the policy begins at {trained['before']:.3f}"
    for counting in COUNTINGS:
        if trained["rise"][counting]["low"] <= 0:
            yield f"no rise, {counting}: {trained['rise'][counting]}"
        if control["rise"][counting]["low"] > 0:
            yield f"the control rises, {counting}: {control['rise'][counting]}"
    for name, run in (("trained", trained), ("control", control)):
        yield from (f"{name}: {each}" for each in differing(run["steps"]))
    if result["overfit"] and not result["overfit"]["verdict"]["passed"]:
        yield f"overfit did not pass: {result['overfit']['verdict']['diagnosis']}"


def differing(steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Gates and re-scored tokens that are further apart than is allowed."""
    for step in steps:
        if not (step.get("gate/mean") or math.inf) < GATE:
            yield f"step {step['step']}: engine and trainer differ by {step.get('gate/mean')}"
        if (step.get("logprob/max") or 0.0) > RESCORED:
            yield f"step {step['step']}: a token re-scores {step['logprob/max']} off"


def told(result: dict[str, Any]) -> Iterator[str]:
    """For a person."""
    for name in ("trained", "control"):
        run = result[name]
        rises = " ".join(
            f"{counting} {each['mean']:+.3f} [{each['low']:+.3f}, {each['high']:+.3f}]"
            for counting, each in run["rise"].items()
        )
        means = f"{run['before']:.3f} to {run['after']:.3f}"
        yield f"{name}: {run['updates']} updates, {means}: {rises}"
        yield f"  syncs inside trajectories: {run['swaps']['syncs_inside_trajectories']},"
        yield f"  inside turns: {run['swaps']['syncs_inside_turns']}"
        for number in ("gate/mean", "gate/max", "logprob/max", "logprob/swapped", "logprob/age_1"):
            found = [each[number] for each in run["steps"] if each.get(number) is not None]
            if found:
                yield f"  {number}: {min(found):.2e} to {max(found):.2e} over {len(found)} steps"
    yield f"seconds: {result['seconds']}"
    yield from result["breaches"]


def rounded(value: Any) -> Any:
    """Seven digits are enough."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
