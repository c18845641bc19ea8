# SPDX-License-Identifier: Apache-2.0
"""Preflight killed at twenty points and resumed: ``python -m nox -s bench -- kill_points``.

Runs eight trials, four at once, and kills the runner by SIGKILL at ten named points and at ten
drawn by a seed over the events of a run. Each is then resumed, and the bar is held: every reward
is there, nothing that had ended was repeated (records keep their inode, time and bytes; only
trials without one are started), no directory passes for another, nothing is left behind. What is
left is counted here as well, outside envkit, by the mark and the name that carry the run's token:
at once and after the resumption. By turns the run is resumed at once, resumed after ``envkit
doctor --reap``, which must leave nothing, or resumed once what it started has ended by itself.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parts.machine import machine

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
KILL_AT = ROOT / "packages/envkit/tests/preflight/kill_at.py"
ENVKIT = (sys.executable, "-c", "from envkit.cli import main; main()")
TASKS = ("budget-tolls", "rail-margin")
WORLD = "brackwater-freight"
TRIALS, AT_ONCE = 8, 4
NAMED = {
    "preparing": 1,
    "before-the-first-box": 1,
    "start-wave": 2,
    "barrier": AT_ONCE,
    "act": 2,
    "grade": 3,
    "record-on-disk-but-not-said": 3,
    "teardown": 5,
    "cleanup": 1,
    "report": 2,
}
"""Point: the how manieth time the run comes there. The second file of a report is its page."""
SEED = 3
RANDOM = 10
FIRST = ("resume", "doctor --reap", "wait")
NOTHING = {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}
PATIENCE_S = 30
TIMEOUT_S = 300


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="kill-points-") as holder:
        tasks = copied(Path(holder))
        events = whole(tasks, Path(holder, "whole"))
        draw = random.Random(SEED)
        drawn = sorted(draw.sample(range(1, events + 1), RANDOM))
        kills = [*NAMED.items(), *(("event", number) for number in drawn)]
        rows = [
            row(tasks, Path(holder, f"run{n}"), *kill, first=FIRST[n % len(FIRST)])
            for n, kill in enumerate(kills)
        ]
    result = {
        "what": f"{len(rows)} kills of a preflight of {TRIALS} trials, {AT_ONCE} at once",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": SEED,
        "events_of_a_whole_run": events,
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "kill_points.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    for each in rows:
        print(line(each))
    held = not any(each["breaches"] for each in rows)
    print(f"{'holds' if held else 'BREACHED'}: {path.relative_to(ROOT)}")
    return 0 if held else 1


def copied(holder: Path) -> Path:
    """The two tasks and their world, out of the way of whoever edits them meanwhile."""
    tasks = holder / "tasks"
    for name in (*TASKS, f"worlds/{WORLD}"):
        shutil.copytree(ROOT / "tasks" / name, tasks / name)
    return tasks


def asked(tasks: Path, report: Path) -> list[str]:
    repeat = str(TRIALS // len(TASKS))
    words = ["preflight", str(tasks), "--concurrency", str(AT_ONCE), "--repeat", repeat]
    return [*words, "--report", str(report)]


def whole(tasks: Path, report: Path) -> int:
    """How many events a run has that is not killed; it also fills the caches."""
    done = run([*ENVKIT, *asked(tasks, report)])
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (report / "journal.jsonl").read_text().splitlines()
    return len(lines) - 2  # its beginning and its end are no events


def row(tasks: Path, report: Path, point: str, number: int, *, first: str) -> dict[str, Any]:
    """One kill and what came of it."""
    words = [sys.executable, str(KILL_AT), point, str(number), *asked(tasks, report)]
    killed = run(words)
    token = json.loads((report / "run.json").read_text())["run_token"]
    before, left_by_kill = ended(report), left(token)
    left_before_resume = meanwhile(first, token)
    began = time.monotonic()
    resumed = run([*ENVKIT, "preflight", "--resume", str(report), "--json"])
    seconds = time.monotonic() - began
    run([*ENVKIT, "doctor", "--reap"])
    found = {
        "point": point,
        "number": number,
        "killed": killed.returncode == -9,
        "ended_before": len(before),
        "left_by_kill": left_by_kill,
        "first": first,
        "left_before_resume": left_before_resume,
        "resume_exit": resumed.returncode,
        "resume_s": round(seconds, 2),
        "report": report_of(resumed.stdout),
        "kept": {name: ended(report).get(name) == mark for name, mark in before.items()},
        "started_again": sorted(set(started(report)) & before.keys()),
        "directories": sorted(path.name for path in (report / "trials").iterdir()),
        "set_aside": sorted(str(p.relative_to(report)) for p in report.glob("cut-off/*/*")),
        "left_in_the_end": left(token),
    }
    return {**found, "breaches": breaches(found)}


def meanwhile(first: str, token: str) -> dict[str, int] | None:
    """What is left when the run is resumed; None where nothing was done or waited for."""
    if first == "resume":
        return None
    if first == "doctor --reap":
        run([*ENVKIT, "doctor", "--reap"])
        return left(token)
    until = time.monotonic() + PATIENCE_S
    while (now := left(token)) != NOTHING and time.monotonic() < until:
        time.sleep(0.2)
    return now


def report_of(text: str) -> dict[str, Any]:
    """What of a report the bar is held by."""
    report = json.loads(text)
    names = ("verdict", "why", "trials", "attempts", "peak_live", "seconds", "rewards", "resumed")
    return {name: report[name] for name in (*names, "leaks")}


def breaches(found: dict[str, Any]) -> list[str]:
    """What of the bar does not hold."""
    report, rewards = found["report"], found["report"]["rewards"]
    trials = [name for name in found["directories"] if name != "sandbox.log"]
    checks = {
        "it was not killed": found["killed"],
        "the resumed run did not pass": found["resume_exit"] == 0 and report["verdict"] == "PASS",
        "a reward is missing": (rewards["n"], rewards["mean"]) == (TRIALS, 1.0),
        "a trial is missing or twice": report["trials"] == report["attempts"] == TRIALS,
        "a record that was there changed": all(found["kept"].values()),
        "a trial that had ended was started again": not found["started_again"],
        "a directory is missing or strange": len(trials) == TRIALS
        and not any(name.startswith(".") or "attempt" in name for name in trials),
        "the report does not say that it was resumed": report["resumed"]["times"] == 1,
        f"{found['first']} left something": found["left_before_resume"] in (None, NOTHING),
        "something is left in the end": found["left_in_the_end"] == NOTHING
        and not any(report["leaks"].values()),
    }
    return [name for name, held in checks.items() if not held]


def ended(report: Path) -> dict[str, list[Any]]:
    """Each record that is there: what names its file, and what is in it."""
    return {
        path.parent.name: [
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        ]
        for path in report.glob("trials/*/envkit.json")
    }


def started(report: Path) -> Iterator[str]:
    """The trials that the last process of a run started."""
    lines = [json.loads(text) for text in (report / "journal.jsonl").read_text().splitlines()]
    last = max(n for n, each in enumerate(lines) if each["event"] == "began")
    return (each["trial"] for each in lines[last:] if each["event"] == "started")


def left(token: str) -> dict[str, int]:
    """What carries a run's token now."""
    name = f"envkit-run-{token}"
    groups = [path for path in Path("/sys/fs/cgroup").glob(f"**/envkit-{token}*") if path.is_dir()]
    mounts = {text for text in mount_lines() if name in text}
    return {
        "processes": sum(f"ENVKIT_RUN={token}".encode() in each for each in environments()),
        "mounts": len(mounts),
        "cgroups": len({path.name for path in groups}),
        "files": int(Path("/tmp", name).exists()),
    }


def environments() -> Iterator[list[bytes]]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield path.read_bytes().split(b"\0")
        except OSError:
            continue  # gone meanwhile


def mount_lines() -> Iterator[str]:
    """In whatever namespace: a private one lives as long as a process in it."""
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            yield from path.read_text().splitlines()
        except OSError:
            continue


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def line(each: dict[str, Any]) -> str:
    resumed = each["report"]["resumed"]
    verdict = "; ".join(each["breaches"]) or "holds"
    return (
        f"{each['point']:<28} {each['number']:>4}  {each['ended_before']} had ended, "
        f"{resumed['attempts_cut_off']} cut off, resumed in {each['resume_s']:5.1f} s  {verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
