# SPDX-License-Identifier: Apache-2.0
"""What ``python3`` costs in a box, warm and cold: ``python -m nox -s bench -- warm_interpreter``.

Runs a few programs in a box with the office packages, each several times, by a shell (through the
shim) and directly, with a warmed parent and without. CPU is counted in the box by its control
group, outside it for whatever entered it, and for the warmed parent's forks; memory is what the
program's process holds for itself alone at its end (``Private_*`` of ``smaps_rollup``).
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import socket
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from envkit.image.rootfs import RootSpec, ensure_rootfs
from envkit.sandbox import command
from envkit.sandbox.channel import Channel
from envkit.sandbox.limits import Limits
from envkit.sandbox.prepare import cache_directory
from envkit.sandbox.session import Server, forkserver
from envkit.sandbox.spec import BoxSpec
from envkit.sandbox.stage import files_uid

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = ("numpy", "openpyxl", "pandas", "pdfplumber", "python-docx", "python-pptx")
PROGRAMS = ("pass", "import pandas", "import pandas, openpyxl, pdfplumber")
HELD = (
    "\nprint(sum(int(line.split()[1]) for line in open('/proc/self/smaps_rollup')"
    " if line.startswith('Private_')))"
)
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
TIMES = 20


def main() -> int:
    root = ensure_rootfs(RootSpec(packages=PACKAGES, owner_uid=files_uid()), cache_directory())
    rows = [row for warm in (False, True) for row in asyncio.run(measured(root, warm=warm))]
    result = {
        "benchmark": "warm_interpreter",
        "date": datetime.now(UTC).date().isoformat(),
        "command": "python -m nox -s bench -- warm_interpreter",
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "times": TIMES,
        "rows": rows,
    }
    (RESULTS / "warm_interpreter.json").write_text(json.dumps(result, indent=2) + "\n")
    for row in rows:
        print(*(f"{name} {value}" for name, value in row.items()), sep=", ")
    return 0


async def measured(root: Path, *, warm: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    async with forkserver(warm=False, roots=(root,) if warm else ()) as server:
        for number, program in enumerate(PROGRAMS):
            for how in ("shell", "direct"):
                cost = await costs(server, root, program, how, f"{how}{number}")
                rows.append({"program": program, "how": how, "warm": warm, **cost})
    return rows


async def costs(server: Server, root: Path, program: str, how: str, name: str) -> dict[str, float]:
    ours, theirs = socket.socketpair()
    await server.channel.ask("attach", [theirs.fileno()], trial=name)
    theirs.close()
    channel = Channel(ours)
    spec = BoxSpec(name="agent", root=root, limits=Limits(cpus=2.0))
    await channel.ask("open", box="agent", spec=spec.to_dict())
    line = ["python3", "-c", program + HELD]
    argv = line if how == "direct" else ["/bin/sh", "-c", '"$@"; true', "sh", *line]
    held: list[int] = []
    wall: list[float] = []
    empty = await parent_cpu_s(server)
    for _ in range(TIMES):
        done = await command.run(
            channel, argv, box="agent", env=ENV, cwd="/", timeout_s=60, max_output=1000
        )
        if done.status:
            raise SystemExit(done.stderr.decode())
        held.append(int(done.stdout))
        wall.append(done.seconds)
    parent_s = await parent_cpu_s(server) - empty
    ran_warm = (await channel.ask("usage", box="agent"))["warmed"]
    closed = await channel.ask("close", box="agent")
    channel.close()
    return {
        "ran_warm": ran_warm,
        "box_cpu_ms": round(1000 * closed["usage"]["cpu_s"] / TIMES, 1),
        "entering_cpu_ms": round(1000 * closed["forks_s"] / TIMES, 1),
        "parent_cpu_ms": round(1000 * parent_s / TIMES, 1),
        "wall_ms": round(1000 * statistics.median(wall), 1),
        "private_mib": round(statistics.median(held) / 1024, 1),
    }


async def parent_cpu_s(server: Server) -> float:
    return float((await server.channel.ask("census"))["cpu_s"]["zygotes"])


if __name__ == "__main__":
    sys.exit(main())
