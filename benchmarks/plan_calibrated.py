# SPDX-License-Identifier: Apache-2.0
"""``rltrain plan`` calibrated on one setting, against what two others do, on this machine.

``python -m nox -s bench -- plan_calibrated --engine-python PYTHON --policy DIR --tasks DIR``

Three settings of one recipe differ in trials at once, in the bound of staleness and in samples a
step. Each is run by ``rltrain fit`` at a learning rate of next to nothing, so that trials stay as
long as they are: real vLLM on the CPU, real boxes, real servers. ``rltrain plan --calibrate`` is
given the run of the first setting alone and predicts the steps an hour of the other two. Held is
that both predictions are within 25 % of what was measured, from the second step to the last.

``PYTHON`` is the trainer's interpreter, beside which ``rltrain`` lies; ``DIR`` a policy, as
``rltrain tiny-policy`` leaves it, and its tasks. ``--from DIR`` takes the runs 0 to 2 in it and
runs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parts.machine import machine

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "plan_calibrated.json"
RECIPE = "tiny-cpu"
WITHIN = 0.25
TIMEOUT_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A setting that is run."""

    concurrency: int
    staleness: int
    prompts: int
    samples: int

    def sets(self) -> list[str]:
        """For the command line."""
        given = {
            "rollout.concurrency": self.concurrency,
            "buffer.staleness": self.staleness,
            "batch.prompts": self.prompts,
            "batch.samples": self.samples,
        }
        return [word for name, value in given.items() for word in ("--set", f"{name}={value}")]


CASES = (
    Case(concurrency=8, staleness=3, prompts=4, samples=4),
    Case(concurrency=16, staleness=1, prompts=4, samples=4),
    Case(concurrency=4, staleness=3, prompts=4, samples=8),
)
"""The first one is calibrated by."""


def main() -> int:
    parser = argparse.ArgumentParser(description="plan, calibrated on one setting of three")
    parser.add_argument("--engine-python", type=Path, required=True)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--tasks", type=Path)
    parser.add_argument("--from", dest="there", type=Path)
    parser.add_argument("--steps", type=int, default=16)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plan-calibrated-") as made:
        place: Path = asked.there or Path(made)
        if asked.there is None:
            for number, case in enumerate(CASES):
                fit(asked, case, place / str(number))
        found = [compared(asked, case, place, number) for number, case in enumerate(CASES)]
    return told(found)


def fit(asked: argparse.Namespace, case: Case, run: Path) -> None:
    """A run of one setting, that learns nothing."""
    if asked.tasks is None:
        raise SystemExit("give --tasks DIR, or --from DIR with runs that are there")
    still = ("run.epochs=1000", f"run.steps={asked.steps}", "optimizer.learning_rate=1e-12")
    still += ("evaluate.passes=3",)  # enough for the first gate to have what it wants
    words = [word for each in still for word in ("--set", each)]
    tasks = ("--set", f"rollout.tasks={json.dumps(str(asked.tasks.absolute()))}")
    python = ("--set", f"rollout.environment_python={json.dumps(sys.executable)}")
    given = ("--policy", asked.policy, "--out", run)
    rltrain(asked, "fit", RECIPE, *given, *case.sets(), *words, *tasks, *python)


def compared(asked: argparse.Namespace, case: Case, place: Path, number: int) -> dict[str, Any]:
    """What a setting did, and what the plan says of it that knows the first run."""
    by = ("--model", asked.policy, "--calibrate", place / "0", "--grid", case.concurrency)
    plan = json.loads(rltrain(asked, "plan", RECIPE, *by, *case.sets(), "--json"))
    measured = measured_of(place / str(number))
    row = plan["rows"][0]
    return {
        "setting": {name: getattr(case, name) for name in Case.__dataclass_fields__},
        "calibrated_by": number == 0,
        "measured": measured,
        "predicted": row,
        "calibration": {**plan["calibrated"], "run": "0"},
        "off": row["steps_per_h"] / measured["steps_per_h"] - 1,
    }


def measured_of(run: Path) -> dict[str, Any]:
    """Steps an hour from the second step on, with every step's seconds."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    times = [row["time"] for row in rows[1:]]
    return {
        "steps_per_h": 3600 * (len(times) - 1) / (times[-1] - times[0]),
        "steps": len(rows),
        "seconds": [
            {name: value for name, value in row.items() if name.startswith("seconds/")}
            for row in rows
        ],
        "tokens": [row.get("tokens/all") for row in rows],
    }


def told(found: list[dict[str, Any]]) -> int:
    """Print, and leave the record."""
    breaches = [
        f"{each['setting']}: predicted {each['off']:+.0%}"
        for each in found
        if not each["calibrated_by"] and abs(each["off"]) > WITHIN
    ]
    for each in found:
        print(
            f"{each['setting']}: measured {each['measured']['steps_per_h']:.1f} steps/h, predicted"
            f" {each['predicted']['steps_per_h']:.1f} ({each['off']:+.0%})"
            f"{', calibrated by' if each['calibrated_by'] else ''}"
        )
    record = {
        "what": "steps an hour of two settings, predicted from a third that was run",
        "command": " ".join(["python", *map(os.path.basename, sys.argv[:1])]),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "holds": not breaches,
        "breaches": breaches,
        "settings": found,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print("; ".join(breaches) or f"holds: both within {WITHIN:.0%}")
    return bool(breaches)


def rltrain(asked: argparse.Namespace, *words: object) -> str:
    """The command, which must exit 0; what it printed."""
    program = asked.engine_python.absolute().with_name("rltrain")
    command = [str(program), *map(str, words)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    began = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=TIMEOUT_S, env=env
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    print(f"{' '.join(command[1:3])}: {time.monotonic() - began:.0f} s", flush=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
