# SPDX-License-Identifier: Apache-2.0
"""What a command takes when many compute at once: ``python -m nox -s bench -- crowded_cores 64``.

Imports pandas in 1, 2, 4, ... N fresh processes that start together, and keeps the seconds that
each took from its start to its end. ``Costs.trials_a_core`` of ``envkit.preflight.fit`` stands on
this: it names the crowd in which a command of half a CPU second meets its own limit.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
COMMAND = (sys.executable, "-c", "import pandas")
TIMEOUT_S = 600


def main(most: int) -> int:
    crowd(1)  # files into the cache
    sizes = [2**power for power in range(most.bit_length()) if 2**power <= most]
    runs = {size: crowd(size) for size in sizes}
    result = {
        "what": "importing pandas in so many processes at once",
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": runs,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"crowded_cores_{most}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    alone = runs[1]["median_s"]
    for size, run in runs.items():
        times = run["median_s"] / alone
        print(f"{size:>4} at once  median {run['median_s']:6.2f} s  {times:5.1f} times alone")
    print(path.relative_to(ROOT))
    return 0


def crowd(size: int) -> dict[str, Any]:
    """Seconds of each of so many processes, and how busy the machine was before."""
    load = os.getloadavg()[0]
    began = time.monotonic()
    running = {subprocess.Popen(COMMAND): time.monotonic() for _ in range(size)}
    seconds: list[float] = []
    while running and time.monotonic() - began < TIMEOUT_S:
        for process in [process for process in running if process.poll() is not None]:
            seconds.append(time.monotonic() - running.pop(process))
        time.sleep(0.005)
    for process in running:
        process.kill()
        process.wait()
    return {
        "load_before": round(load, 1),
        "ended": len(seconds),
        "median_s": round(statistics.median(seconds), 3),
        "max_s": round(max(seconds), 3),
    }


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 64))
