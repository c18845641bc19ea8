# SPDX-License-Identifier: Apache-2.0
"""Trials at one instant: ``python -m nox -s bench -- preflight_concurrency 550``.

Runs ``envkit preflight tasks --concurrency N`` with each agent, or with those named after N, and
holds the bar: N boxes with answering gateways live at once, the reward that the agent must earn
everywhere, no fault, nothing run again, nothing left behind, within 6 minutes and 16 GiB. What is
left is counted here as well, outside envkit, by the mark that every process of a run carries in its
starting environment; so is memory, by what this machine has available. Exits 0 only when the bar
holds; the result file holds the whole reports.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from parts.machine import machine

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FOLDERS = {
    str(ROOT): "REPOSITORY",
    sys.prefix: "ENVIRONMENT",
    sys.base_prefix: "PYTHON",
    tempfile.gettempdir(): "TMP",
    str(Path.home()): "HOME",
}
"""This machine's folders, the inner ones first, and what stands for them in a result file."""
AGENTS = {"replay": 1.0, "oracle": 1.0, "nop": 0.0}
TIMEOUT_S = 900
SECONDS = 360.0
MEMORY_MIB = 16 * 1024


def main(concurrency: int, agents: Sequence[str]) -> int:
    runs = {agent: measure(agent, concurrency) for agent in agents}
    result = {
        "what": f"{concurrency} trials at one instant",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": runs,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"preflight_{concurrency}.json"
    path.write_text(json.dumps(rounded(result)) + "\n")
    for agent, run in runs.items():
        print(line(agent, run))
    held = all(not run["breaches"] for run in runs.values())
    print(f"{'holds' if held else 'BREACHED'}: {path.relative_to(ROOT)}")
    return 0 if held else 1


def measure(agent: str, concurrency: int) -> dict[str, Any]:
    command = f"envkit preflight tasks --agent {agent} --concurrency {concurrency} --json"
    with tempfile.TemporaryDirectory() as holder:
        before, began = marked(), time.monotonic()
        with Memory() as memory:
            done = subprocess.run(
                [*command.split(), "--report", f"{holder}/report"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        seconds = time.monotonic() - began
        samples = [sample(path) for path in sorted(Path(holder).rglob("envkit.json"))]
    report = json.loads(done.stdout)
    left = sorted(marked() - before)
    return {
        "command": command,
        "exit": done.returncode,
        "seconds": round(seconds, 1),
        "left_outside": left,
        "peak_memory_outside_mib": round(memory.peak_mib),
        "breaches": breaches(report, done.returncode, left, AGENTS[agent], concurrency)
        + over(seconds, memory.peak_mib),
        "report": report,
        "samples": samples,
    }


def sample(path: Path) -> dict[str, Any]:
    """One trial's raw figures: seconds by phase, CPU seconds by part, memory."""
    record = json.loads(path.read_text())
    kept = ("phases", "cpu_s", "peak_memory_mib", "tool_calls", "reward", "reward_valid")
    attempts = [{name: attempt[name] for name in kept} for attempt in record["attempts"]]
    return {"trial": record["trial_id"], "seconds": record["seconds"], "attempts": attempts}


def breaches(
    report: dict[str, Any], exit_code: int, left: list[int], reward: float, concurrency: int
) -> list[str]:
    checks = {
        f"exit {exit_code}": exit_code == 0,
        f"peak_live {report['peak_live']}": report["peak_live"] == concurrency,
        f"trials {report['trials']}": report["trials"] == concurrency,
        f"attempts {report['attempts']}": report["attempts"] == concurrency,
        f"faults {report['faults']}": not report["faults"],
        f"mean reward {report['rewards']['mean']}": report["rewards"]["mean"] == reward,
        f"valid rewards {report['rewards']['n']}": report["rewards"]["n"] == concurrency,
        f"leaks {report['leaks']}": not any(report["leaks"].values()),
        f"left outside {left}": not left,
    }
    return [name for name, holds in checks.items() if not holds]


def over(seconds: float, memory_mib: float) -> list[str]:
    checks = {
        f"{seconds:.0f} s, {SECONDS:.0f} allowed": seconds <= SECONDS,
        f"{memory_mib:,.0f} MiB, {MEMORY_MIB:,} allowed": memory_mib <= MEMORY_MIB,
    }
    return [name for name, holds in checks.items() if not holds]


class Memory:
    """How much of this machine's memory a run took at most, read from outside it."""

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._before = available_mib()
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._reader.join()

    def _read(self) -> None:
        while not self._over.wait(0.25):
            self.peak_mib = max(self.peak_mib, self._before - available_mib())


def available_mib() -> float:
    rows = Path("/proc/meminfo").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("MemAvailable")).split()[1]) / 1024


def marked() -> set[int]:
    """Processes of any run, by the mark in their starting environment."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"ENVKIT_RUN=" in (entry / "environ").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue  # gone meanwhile, or another user's
    return found


def rounded(value: Any) -> Any:
    """Figures to a tenth of a millisecond (more digits are noise), no folder of this machine."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, str):
        return anywhere(value)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def anywhere(text: str) -> str:
    """A text whose paths name no folder of this machine."""
    for folder, name in FOLDERS.items():
        text = text.replace(folder, name)
    return text


def line(agent: str, run: dict[str, Any]) -> str:
    report = run["report"]
    cpu = report["cpu_s"] / max(1, report["attempts"])
    verdict = "; ".join(run["breaches"]) or "holds"
    return (
        f"{agent:<7} {run['seconds']:6.1f} s  peak live {report['peak_live']}"
        f"  {run['peak_memory_outside_mib']:,} MiB  {cpu:.2f} CPU s a trial  {verdict}"
    )


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    sys.exit(main(wanted, sys.argv[2:] or list(AGENTS)))
