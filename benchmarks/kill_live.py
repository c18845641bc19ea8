# SPDX-License-Identifier: Apache-2.0
"""One live run, killed at every named point and at random moments, and gone on with each time:
``python -m nox -s bench -- kill_live TRAINER_PYTHON POLICY``.

The run trains the policy of `nox -s fit-demo` on tasks/tiny. Named points lie in the driver, in the
trainer (sync, optimizer, commit), in the crew (segments) and in a trial (its verdict); at twenty
random moments the driver, a trial, the fork server, an engine or the trainer is killed. Where the
run ends it is gone on with; where it goes on, it is let go on for two steps.

Held from outside, by the files alone: every group that a surviving commit consumed was accepted by
the scheduler in that lineage, each once and none twice; every sample of it has one row in the
store, valid and not older than the bound; no process of a killed run is left when the next begins.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parts.machine import machine

from envkit.trajectory.store import Store

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks/results/kill_live.json"
HOOK = ROOT / "benchmarks/parts/killing"
SEED, RANDOM, STALENESS = 5, 20, 3
STEP_S = 600.0
SETTINGS = (
    *("batch.prompts=2", "batch.samples=4", "rollout.concurrency=8", "run.steps=100000"),
    *("evaluate.passes=1", "gates.least_tokens=256", "checkpoint.every=1", "checkpoint.keep=3"),
    *("rollout.keep_trials=none", "optimizer.learning_rate=1e-6"),
)
NAMED = {
    "sync-begins": "rltrain.sync.sender:Leader.sync:entered:2:",
    "sync-ended": "rltrain.sync.sender:Leader.sync:left:2:",
    "optimizer-begins": "rltrain.policy.fsdp.backend:FsdpBackend.step:entered:2:",
    "optimizer-ended": "rltrain.policy.fsdp.backend:FsdpBackend.step:left:2:",
    "commit-begins": "rltrain.loop.checkpoint:begin:entered:2:",
    "commit-written": "rltrain.loop.checkpoint:publish:entered:2:",
    "commit-named": "rltrain.loop.checkpoint:publish:left:2:",
    "pruned": "rltrain.loop.checkpoint:prune:left:2:",
    "lineage-begun": "rltrain.loop.lineage:Lineages.begun:left:1:",
    "segment-before-rename": "envkit.durable:publish:entered:4:segment-",
    "segment-after-rename": "envkit.durable:publish:left:4:segment-",
    "verdict-before": "envkit.trial.record:write_attempt:entered:3:",
    "verdict-after": "envkit.trial.record:write_attempt:left:3:",
}
VICTIMS = {
    "driver": "rltrain fit",
    "trainer": "ray::RankHost",
    "crew": "envkit.crew",
    "fork server": "envkit.sandbox.forkserver",
    "engine": "vllm.entrypoints",
}


class Run:
    """The run and its directory; one process at a time."""

    def __init__(self, python: Path, policy: Path, place: Path) -> None:
        self._python, self._policy, self._place = python, policy, place
        self.root = place / "run"
        self.process: subprocess.Popen[bytes] | None = None

    def go_on(self, kill: dict[str, str]) -> None:
        """Begin it, or go on with it."""
        words = ["--resume", self.root] if (self.root / "run.json").exists() else self._first()
        path = f"{HOOK}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        env = {**os.environ, **({"PYTHONPATH": path} | kill if kill else {})}
        with (self._place / "said").open("ab") as said:
            self.process = subprocess.Popen(
                [self._python.with_name("rltrain"), "fit", *map(str, words)],
                stdout=said,
                stderr=said,
                env=env,
                cwd=ROOT,
            )

    def _first(self) -> list[object]:
        crew = self._place / "python"
        crew.write_text(f'#!/bin/sh\nPYTHONPATH="{HOOK}" exec "{sys.executable}" "$@"\n')
        crew.chmod(0o755)
        given = ["tiny-cpu", "--policy", self._policy, "--tasks", ROOT / "tasks/tiny"]
        given += ["--environment-python", crew, "--out", self.root]
        return [*given, *(word for each in SETTINGS for word in ("--set", each))]

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def steps(self) -> int:
        """Taken by this process's lineage or those before it."""
        file = self.root / "metrics.jsonl"
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        return json.loads(lines[-1])["step"] if lines else 0

    def wait(self, steps: int) -> bool:
        """Until so many steps more are taken, or it ends; whether it goes on."""
        until, wanted = time.monotonic() + STEP_S, self.steps() + steps
        while self.runs and self.steps() < wanted:
            if time.monotonic() > until:
                raise SystemExit(f"no step in {STEP_S:g} s; see {self._place / 'said'}")
            time.sleep(0.5)
        return self.runs

    def kill(self) -> None:
        """The driver."""
        if self.process is not None and self.runs:
            self.process.kill()
            self.process.wait()

    def left(self) -> list[str]:
        """Processes of it, half a minute after its driver ended."""
        until = time.monotonic() + 30
        while (found := list(self.processes().values())) and time.monotonic() < until:
            time.sleep(0.5)
        return found

    def processes(self) -> dict[int, str]:
        """That work in its directory or were started for it, by their command lines."""
        marks = (str(self.root).encode(), str(self._place / "python").encode())
        found: dict[int, str] = {}
        for each in Path("/proc").glob("[0-9]*"):
            try:
                words = (each / "cmdline").read_bytes()
                seen = words + (each / "environ").read_bytes()
                seen += os.fsencode(os.readlink(each / "fd/1"))
            except OSError:
                continue
            if any(mark in seen for mark in marks) and int(each.name) != os.getpid():
                found[int(each.name)] = words.replace(b"\0", b" ").decode(errors="replace")[:160]
        return found

    def victim(self, kind: str) -> int | None:
        """A process of this kind."""
        wanted = VICTIMS[kind]
        return next((pid for pid, words in self.processes().items() if wanted in words), None)


def main() -> int:
    python, policy = (Path(each).absolute() for each in sys.argv[1:3])
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="kill-live-") as place:
        run = Run(python, policy, Path(place))
        for name, point in NAMED.items():
            rows.append(named(run, name, point, Path(place) / f"mark-{name}"))
            print(json.dumps(rows[-1]), flush=True)
        draw = random.Random(SEED)
        for number in range(RANDOM):
            rows.append(drawn(run, number, draw))
            print(json.dumps(rows[-1]), flush=True)
        run.kill()
        rows[-1]["left"] = run.left()
        held = account(run.root)
    breaches = [
        *held["breaches"],
        *(f"{row['kill']}: left {x}" for row in rows for x in row["left"]),
    ]
    breaches += [f"{row['kill']}: was never come to" for row in rows if not row["killed"]]
    result = {
        "what": f"a live run killed {len(rows)} times and gone on with",
        "command": "python -m nox -s bench -- kill_live TRAINER_PYTHON POLICY",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "held": held,
        "breaches": breaches,
        "rows": rows,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{'BREACHED' if breaches else 'holds'}: {RESULT.relative_to(ROOT)}")
    return 1 if breaches else 0


def named(run: Run, name: str, point: str, mark: Path) -> dict[str, Any]:
    """Go on with the run until one of its processes is killed there, and two steps more."""
    if run.runs:
        run.kill()
    left = run.left()
    run.go_on({"KILL_AT": point, "KILL_MARK": str(mark)})
    before = run.steps()
    while run.runs and not mark.exists() and run.steps() < before + 8:
        time.sleep(0.2)
    went_on = run.wait(2)
    return {
        "kill": name,
        "killed": mark.read_text().strip() if mark.exists() else "",
        "went_on": went_on,
        "steps": run.steps(),
        "left": left,
    }


def drawn(run: Run, number: int, draw: random.Random) -> dict[str, Any]:
    """Kill a process at some moment of the next steps, and let the run go on two more."""
    left: list[str] = []
    if not run.runs:
        left = run.left()
        run.go_on({})
    run.wait(1)
    kind = draw.choice(sorted(VICTIMS))
    time.sleep(draw.uniform(0, 8))
    pid = run.victim(kind)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    went_on = run.wait(2)
    return {
        "kill": f"random {number}: {kind}",
        "killed": str(pid or ""),
        "went_on": went_on,
        "steps": run.steps(),
        "left": left,
    }


def account(root: Path) -> dict[str, Any]:
    """What the files say: the newest commit against what the scheduler accepted, and the rows."""
    newest = max((root / "checkpoints").glob("step-*/commit.json"))
    live = json.loads(newest.read_text())["live"]
    consumed = [group for groups in live["consumed"].values() for group in groups]
    accepted = surviving(root, live)
    rows = {
        head.trajectory_id: head for head in Store(next(root.glob("nodes/*/trajectories"))).heads
    }
    breaches = [f"{group}: {n} times" for group, n in Counter(consumed).items() if n > 1]
    if Counter(consumed) != Counter(accepted):
        breaches.append(f"consumed {len(consumed)} groups, accepted {len(accepted)}, not the same")
    for group, samples in accepted.items():
        breaches += [
            f"{group}: {name} has no valid row"
            for name in samples
            if name not in rows or not rows[name].reward_valid
        ]
    return {
        "steps": live["step"],
        "lineage": live["lineage"],
        "groups": len(consumed),
        "rows": len(rows),
        "breaches": breaches,
    }


def surviving(root: Path, live: dict[str, Any]) -> dict[str, list[str]]:
    """Groups of the last batch line of every step, up to the commit: by group, its trials."""
    by_step: dict[int, dict[str, list[str]]] = {}
    for line in lines(root / "decisions.jsonl"):
        if line["decision"] == "batch":
            by_step[line["version"]] = {
                group["group"]: [
                    f"{s['group']}-{s['place']:02}-{s['attempt']}" for s in group["samples"]
                ]
                for group in line["groups"]
            }
    return {
        group: samples
        for step, groups in by_step.items()
        if step < live["step"]
        for group, samples in groups.items()
    }


def lines(file: Path) -> Iterator[dict[str, Any]]:
    """Whole ones; a kill may have torn the last of a lineage."""
    for line in file.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except ValueError:
            continue


if __name__ == "__main__":
    sys.exit(main())
