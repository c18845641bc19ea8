# SPDX-License-Identifier: Apache-2.0
"""A live run through a drill of faults, joined with the injector's own log:
``python -m nox -s bench -- fault_drill TRAINER_PYTHON``.

The tasks are those of tasks/tiny and eight more, which ask for a command to be run that the policy
was taught: it kills all it can reach, forks without end, fills its memory or removes the place of
its answer. A policy is made of their recordings and trained on all 40. Below envkit's classifier
trials are struck, by their ids, as `envkit preflight --chaos` strikes them: 10 % lose a box, a
connection is dropped in 10 % at their first call of two (5 % of calls), a call never answers in
4 % (2 %), the verifier crashes in 3 %. An engine is killed twice from outside.

Held is, by files alone: no trial that was struck before its verdict is in a batch; every place of a
batch that was struck has an attempt of another number; samples whose own commands did it are in
batches, valid; every attempt that was started is in a batch, given up for a reason that is written
down, held by the scheduler of the last checkpoint, or was started after that; every row of a batch
is stored once and valid.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parts.machine import machine

from envkit.agent.history import fingerprint
from envkit.agent.types import CallRequest
from envkit.preflight.chaos.choose import DIRECTORY, PLAN_NAME, choose, write_chosen
from envkit.preflight.chaos.log import LOG_NAME, Done, read
from envkit.preflight.chaos.rules import Rules, Wanted
from envkit.trajectory.store import Store
from envkit.trajectory.types import Trajectory

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks/results/fault_drill.json"
TINY = ROOT / "tasks/tiny"
SEED, STEPS, PROMPTS, SAMPLES, HANG_S = 6, 16, 8, 4, 10.0
KILLED_AFTER = (4, 9)
"""Steps after which an engine is killed."""
STRIKES = (
    *(("kill-box", phase, 0.02) for phase in ("start", "call", "answer", "collect", "verify")),
    *(("reset", "call", 0.05), ("http-500", "call", 0.05)),
    ("silent", "call", 0.04),
    ("crash", "verify", 0.03),
)
DEEDS = {
    "kill": {"code": "kill -9 -1; kill -9 1"},
    "fork": {"code": "f(){ f|f& };f", "timeout_s": 2},
    "fill": {"code": "a=[]\nwhile 1: a+=[b'x'*9**8]", "language": "python"},
    "gone": {"code": "rm -rf /logs; echo > /logs"},
}
CODE = "code_execution_server_code_exec"
DONE = {
    fingerprint(CallRequest(name=CODE, arguments=arguments)): deed
    for deed, arguments in DEEDS.items()
}
"""Deeds, by what a call is recorded with."""
LONGEST_S = 7200
OFFLINE = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def main() -> int:
    python = Path(sys.argv[1]).absolute()
    began = time.monotonic()
    place = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp(prefix="drill-"))
    if not (place / "tasks").exists():
        prepare(place, python)
    plan = planned(place)
    kills = run(place, python, plan)
    result = {
        "what": f"a live run of {STEPS} steps through faults of every part of it",
        "command": "python -m nox -s bench -- fault_drill TRAINER_PYTHON",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "engine_kills": kills,
        **judged(place / "run", read(plan.with_name(LOG_NAME))),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["counts"], indent=1))
    print("\n".join(result["breaches"]))
    print(f"{'BREACHED' if result['breaches'] else 'holds'}: {RESULT.relative_to(ROOT)}")
    return 1 if result["breaches"] else 0


# --- what is run ----------------------------------------------------------------------------------


def prepare(place: Path, python: Path) -> None:
    """Tasks, their recordings, and a policy of these."""
    write_tasks(place / "tasks")
    here = Path(sys.executable).parent
    recorded = place / "recorded"
    record = ("--agent", "replay", "--repeat", "1", "--report", recorded)
    done(here / "envkit", "preflight", place / "tasks", *record, allowed=1)  # it loses answers
    warm = ("--phrases", "--mistakes", "0.3", "--batch", "16", "--steps", "240")
    policy = ("tiny-policy", place / "policy", "--transcripts", recorded)
    done(python.with_name("rltrain"), *policy, *warm)


def write_tasks(place: Path) -> None:
    """The 32, with a tool more, and eight whose commands do harm."""
    spec = importlib.util.spec_from_file_location("tiny_make", TINY / "make.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    sys.modules["tiny_make"] = make
    spec.loader.exec_module(make)
    shutil.copytree(TINY, place)
    world = place / "worlds/card-index/world.toml"
    text = world.read_text().replace('["filesystem_server"]', '["filesystem_server", CODE]')
    text = text.replace("CODE", '"code_execution_server"')
    world.write_text(text.replace('copy_file"]', f'copy_file", "{CODE}"]'))
    by_kind = [each for each in make.tasks() if each.kind == "look"]
    for number, (deed, arguments) in enumerate(list(DEEDS.items()) * 2):
        write_deed(place, make, by_kind[number], deed, arguments)


def write_deed(place: Path, make: Any, task: Any, deed: str, arguments: dict[str, Any]) -> None:
    """A task of looking at a card, with a command between."""
    look, home = place / task.name, place / f"{deed}-{task.card.name}"
    shutil.copytree(look, home)
    config = home / "task.toml"
    config.write_text(config.read_text().replace(task.name, home.name))
    read_card, answer = (*make.calls(task),)
    command = {"tool": CODE, "arguments": arguments, "expect_error": deed == "fill"}
    lines = [json.dumps(each) + "\n" for each in (read_card, command, answer)]
    (home / "solution/calls.jsonl").write_text("".join(lines))
    asked = f"Read {task.card.path}. Run {deed}. Answer: keeper, colour.\n"
    (home / "instruction.md").write_text(asked)


def planned(place: Path) -> Path:
    """Which trials are to be struck: of all that there can be, first attempts and others."""
    names = [
        f"g{group:06}-{sample:02}-{attempt}"
        for group in range(40 * STEPS)
        for sample in range(SAMPLES)
        for attempt in range(3)
    ]
    wanted = tuple(
        Wanted(kind=kind, phase=phase, count=None, rate=rate, task="*")
        for kind, phase, rate in STRIKES
    )
    rules = Rules(seed=SEED, hang_s=HANG_S, wanted=wanted)
    plan = place / DIRECTORY / PLAN_NAME
    write_chosen(plan, replace(choose(rules, [(n, "") for n in names], "drill"), run="drill"))
    return plan


def run(place: Path, python: Path, plan: Path) -> list[dict[str, Any]]:
    """The run, while somebody kills its engine."""
    root = place / "run"
    shutil.rmtree(root, ignore_errors=True)
    plan.with_name(LOG_NAME).unlink(missing_ok=True)
    sets = {
        "run.steps": STEPS,
        "batch.prompts": PROMPTS,
        "batch.samples": SAMPLES,
        "rollout.chaos": json.dumps(str(plan)),
        "rollout.keep_trials": "none",
        "rollout.tokens_per_turn": 64,
        "rollout.context_tokens": 1536,
        "evaluate.passes": 2,
        "evaluate.context_tokens": 1536,
        "optimizer.learning_rate": 3e-5,
        "rules.fault_rate": 0.6,  # a quarter is struck
        "rules.reward_with_faults": 0,
    }
    given = ["tiny-cpu", "--policy", place / "policy", "--tasks", place / "tasks"]
    given += ["--environment-python", sys.executable, "--out", root]
    words = [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    kills: list[dict[str, Any]] = []
    over = threading.Event()
    watcher = threading.Thread(target=kill_engines, args=(root, kills, over))
    watcher.start()
    try:
        done(python.with_name("rltrain"), "fit", *given, *words)
    finally:
        over.set()
        watcher.join()
    return kills


def kill_engines(root: Path, kills: list[dict[str, Any]], over: threading.Event) -> None:
    """Each time so many steps are taken, the engine's processes are killed."""
    for wanted in KILLED_AFTER:
        while steps_of(root) < wanted:
            if over.wait(0.2):
                return
        pids = engine_of(root)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        kills.append({"after_step": steps_of(root), "pids": pids, "at": time.time()})


def engine_of(root: Path) -> list[int]:
    """Processes of the run's own engine and of no other: those that write into its logs."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(each / "fd/1")).is_relative_to(root / "logs"):
                found.append(int(each.name))
        except OSError:
            continue
    return sorted(found)


def steps_of(root: Path) -> int:
    file = root / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def done(*command: Any, allowed: int = 0) -> None:
    """A program that must exit 0, or so."""
    words = [*map(str, command)]
    print("$", " ".join([Path(words[0]).name, *words[1:2]]), flush=True)
    env = {**os.environ, **OFFLINE}
    code = subprocess.run(words, check=False, cwd=ROOT, env=env, timeout=LONGEST_S).returncode
    if code not in (0, allowed):
        raise SystemExit(f"{words[0]}: ended with {code}")


# --- what came of it ------------------------------------------------------------------------------


def judged(root: Path, log: list[Done]) -> dict[str, Any]:
    """Batches and decisions of the scheduler against the injector's log and the stored rows."""
    decisions = [json.loads(line) for line in (root / "decisions.jsonl").read_text().splitlines()]
    batched = [
        name_of(sample)
        for line in decisions
        if line["decision"] == "batch"
        for group in line["groups"]
        for sample in group["samples"]
    ]
    rows = {row.identity.trajectory_id: row for row in stored(root)}
    took = {each.trial: each for each in log if each.took}
    fates = fates_of(decisions, set(batched), last_scheduler(root))
    return {
        "counts": {
            "started": len(fates),
            "fates": dict(Counter(fates.values())),
            "batched": len(batched),
            "struck": len(took),
            "struck_by_kind": dict(Counter(f"{s.kind} in {s.phase}" for s in took.values())),
            "struck_and_batched": len(took.keys() & set(batched)),
            "retried_and_batched": sum(later(each) for each in batched),
            "own_deeds_batched": deeds_of(rows, batched),
            "outcomes": dict(Counter(outcome_of(row) for row in rows.values())),
        },
        "breaches": [*breaches(batched, rows, took, fates)],
        "strikes": [asdict(each) for each in log],
        "fates": fates,
        "steps": [json.loads(line) for line in (root / "metrics.jsonl").read_text().splitlines()],
    }


def breaches(
    batched: list[str], rows: dict[str, Trajectory], took: dict[str, Done], fates: dict[str, str]
) -> Iterator[str]:
    """What does not hold."""
    for name, times in Counter(batched).items():
        if times > 1:
            yield f"{name}: in {times} batches"
        if name not in rows or not rows[name].outcome.reward_valid:
            yield f"{name}: in a batch, and has no valid row"
        if name in took:
            yield f"{name}: in a batch, and was struck: {took[name].kind} in {took[name].phase}"
    yield from (f"{name}: nobody knows of it" for name, fate in fates.items() if fate == "unknown")
    for deed in DEEDS:
        if not deeds_of(rows, batched).get(deed):
            yield f"{deed}: no sample that did it is in a batch"
    struck = Counter(each.kind for each in took.values())
    yield from (f"{kind}: struck nobody" for kind, _, _ in STRIKES if not struck[kind])


def last_scheduler(root: Path) -> dict[str, Any]:
    """What the scheduler knew when the last checkpoint was left."""
    newest = max((root / "checkpoints").glob("step-*/commit.json"))
    return json.loads(newest.read_text())["live"]["scheduler"]["book"]


def fates_of(
    decisions: list[dict[str, Any]], batched: set[str], last: dict[str, Any]
) -> dict[str, str]:
    """What became of every attempt that was started; ``last`` is what the scheduler still held."""
    held = {
        f"{group['name']}-{member['place']:02}-{member['attempt']}": member["phase"]
        for group in last["groups"].values()
        for member in group["members"]
    }
    fates: dict[str, str] = {}
    dropped = {line["group"]: line["reason"] for line in decisions if line["decision"] == "drop"}
    started: dict[str, dict[str, Any]] = {}
    after: dict[str, str] = {}
    for line in decisions:
        if line["decision"] == "start":
            started[name_of(line["sample"])] = line
        elif line["decision"] in ("again", "leave", "cancel"):
            sample = dict(line["sample"])
            if line["decision"] == "again":
                sample["attempt"] -= 1
            after[name_of(sample)] = f"{line['decision']}: {line.get('after') or line['reason']}"
    for name, line in started.items():
        if name in batched:
            fates[name] = "batched"
        elif name in after:
            fates[name] = after[name]
        elif line["sample"]["group"] in dropped:
            fates[name] = f"dropped: {dropped[line['sample']['group']]}"
        elif line["at_s"] > last["now_s"]:
            fates[name] = "started after the last checkpoint"
        else:
            fates[name] = f"held at the end: {held[name]}" if name in held else "unknown"
    return fates


def deeds_of(rows: dict[str, Trajectory], batched: list[str]) -> dict[str, int]:
    """Valid samples of batches whose commands did harm, by what they did."""
    found: Counter[str] = Counter()
    for name in batched:
        row = rows.get(name)
        if row is not None and row.outcome.reward_valid:
            found.update({DONE[c.fingerprint] for c in row.episode.calls if c.fingerprint in DONE})
    return dict(found)


def outcome_of(row: Trajectory) -> str:
    fault = row.outcome.fault
    blamed = f"{fault.owner} {fault.code}" if fault else "nobody"
    return f"{'valid' if row.outcome.reward_valid else 'invalid'}: {blamed}"


def stored(root: Path) -> Iterator[Trajectory]:
    for store in root.glob("nodes/*/trajectories"):
        for row in Store(store).scan():
            if isinstance(row, Trajectory) and not row.identity.trajectory_id.startswith("eval-"):
                yield row


def later(name: str) -> bool:
    """Whether it is no first attempt."""
    return not name.endswith("-0")


def name_of(sample: dict[str, Any]) -> str:
    return f"{sample['group']}-{sample['place']:02}-{sample['attempt']}"


if __name__ == "__main__":
    sys.exit(main())
