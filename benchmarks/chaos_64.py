# SPDX-License-Identifier: Apache-2.0
"""Chaos at concurrency 64, then a clean run: ``python benchmarks/chaos_64.py``.

Runs ``envkit preflight tasks --chaos benchmarks/chaos_64.toml`` (208 faults and 24 controls, every
row of the table), scores it, and runs the same tasks right after without chaos. Holds the bar:
every strike took effect and came out as the committed table says, no reward lost, none invalid
called valid, none valid called invalid, no trial disturbed that was not struck, nothing left
behind, and a clean run that passes. What is left is counted here as well, outside envkit, by the
run's token. Exits 0 only when the bar holds; the result file holds both reports, the score with
its rows, and the injector's own log.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from preflight_concurrency import RESULTS, ROOT, machine, rounded

TRIALS = 272
"""232 that are struck, and 40 between them that are not."""

TIMEOUT_S = 1800
RULES = ROOT / "benchmarks" / "chaos_64.toml"


def main(concurrency: int) -> int:
    tasks = len(list((ROOT / "tasks").glob("*/task.toml")))
    repeat = -(-TRIALS // tasks)
    with tempfile.TemporaryDirectory() as holder:
        struck = preflight(
            concurrency, Path(holder) / "struck", "--repeat", str(repeat), "--chaos", str(RULES)
        )
        scored = run("--score-chaos", f"{holder}/struck", "--json")
        score = json.loads(scored["stdout"])
        log = Path(holder, "struck", "chaos", "chaos.jsonl").read_text().splitlines()
        clean = preflight(concurrency, Path(holder) / "clean")
    result = {
        "what": f"{score['faults']['planned']} injected faults at concurrency {concurrency}",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "breaches": breaches(score, scored["exit"], struck, clean),
        "struck": struck,
        "score": score,
        "log": [json.loads(line) for line in log],
        "clean": clean,
    }
    path = RESULTS / f"chaos_{concurrency}.json"
    path.write_text(json.dumps(rounded(result)) + "\n")
    print(told(result))
    print(f"{'BREACHED' if result['breaches'] else 'holds'}: {path.relative_to(ROOT)}")
    return 1 if result["breaches"] else 0


def preflight(concurrency: int, report: Path, *more: str) -> dict[str, Any]:
    """One run: its report without its trials, and what it left."""
    words = ("tasks", "--concurrency", str(concurrency), *more)
    began = time.monotonic()
    done = run(*words, "--json", "--report", str(report))
    document = json.loads(done["stdout"].replace(str(report), "REPORT"))
    return {
        "command": " ".join(("envkit", "preflight", *words)).replace(f"{ROOT}/", ""),
        "exit": done["exit"],
        "seconds": time.monotonic() - began,
        "left_outside": left(document["run_token"]),
        "report": document,
    }


def left(token: str) -> list[str]:
    """What carries a run's token: processes, control groups, mounts, its stage."""
    mark = f"ENVKIT_RUN={token}".encode()
    found = [
        f"mount {row}" for row in Path("/proc/mounts").read_text().splitlines() if token in row
    ]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/envkit-{token}*")]
    found += [str(path) for path in Path("/tmp").glob(f"envkit-run-{token}*")]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # gone meanwhile, or another user's
            found += [f"process {entry.name}"] if mark in environment else []
    return sorted(found)


def run(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        ["envkit", "preflight", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return {"exit": done.returncode, "stdout": done.stdout}


def breaches(
    score: dict[str, Any], exit_code: int, struck: dict[str, Any], clean: dict[str, Any]
) -> list[str]:
    """Every part of the bar that does not hold."""
    faults, controls = score["faults"], score["controls"]
    facts = ("took", "detected", "owner_right", "class_right", "retried_right", "validity_right")
    checks = {
        f"score exit {exit_code}": exit_code == 0,
        f"{faults['planned']} faults": faults["planned"] >= 200,
        f"{faults['kinds_and_phases']} kinds and phases": faults["kinds_and_phases"] >= 20,
        **{
            f"{name}: {counts[fact]} of {counts['planned']} {fact}": counts[fact]
            == counts["planned"]
            for name, counts in (("faults", faults), ("controls", controls))
            for fact in facts
        },
        **{
            f"{faults[fact] + controls[fact]} {fact}": faults[fact] + controls[fact] == 0
            for fact in ("lost", "called_valid", "called_invalid")
        },
        f"disturbed {score['disturbed']}": not score["disturbed"],
        f"leaks {score['leaks']}": score["leaks"] == 0,
        f"left outside {struck['left_outside']}": not struck["left_outside"],
        f"clean exit {clean['exit']}": clean["exit"] == 0,
        f"clean faults {clean['report']['faults']}": not clean["report"]["faults"],
        f"left outside by the clean run {clean['left_outside']}": not clean["left_outside"],
    }
    return [name for name, holds in checks.items() if not holds]


def told(result: dict[str, Any]) -> str:
    struck, clean, faults = result["struck"], result["clean"], result["score"]["faults"]
    lines = (
        f"chaos {struck['seconds']:6.1f} s  {struck['report']['attempts']} attempts",
        f"      {faults['took']} struck, {faults['detected']} detected,"
        f" {faults['class_right']} by their class",
        f"clean {clean['seconds']:6.1f} s  {clean['report']['verdict']}",
        *result["breaches"],
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 64))
