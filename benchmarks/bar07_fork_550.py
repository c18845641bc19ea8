# SPDX-License-Identifier: Apache-2.0
"""Bar 7: one confined process a loop: ``python -m nox -s bench -- bar07_fork_550 [550]``.

Ours is the product's own way: the warmed nursery forks a gateway into a box of its own, confined,
until it answers; each has its sibling box for agent code, opened before the clock starts. The peer
is ``multiprocessing`` with the spawn method: a fresh Python that imports the same and serves the
same, unconfined. Both are asked the same question and must give the same answer. They run in turn.

What ours add in all is what the machine has less of (MemAvailable), boxes and the kernel's own
part included. It cannot tell sixteen processes from what else goes on, so one loop is compared
with one of the peer's by private memory: what a process maps and shares with no other, of every
process in the control group of its box.

Holds when all of ours are up within 8 s and 6 GB, each without any capability, and a loop of ours
starts at least thirty times as fast and takes at most an eighth of the memory of the peer's.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from parts.machine import machine, raise_file_limit

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SECONDS, ADDED_MIB = 8.0, 6 * 1000**3 / (1 << 20)
FASTER, SMALLER = 30.0, 8.0
ROUNDS = 2
SPAWNED = 16
"""Of the peer in a round: 550 would take eight minutes and 49 GB."""
AT_ONCE = 16
"""Starts in flight: more only wait for each other."""
SERVERS = ("filesystem_server", "code_execution_server", "pdf_server")
ANSWER_S = 120.0
OURS_TOO = ("envkit.agent.replay", "envkit.sandbox.local")
SETTLE_S = 2.0
"""Between rounds, for the kernel to take the memory of the last one back."""


# --- ours -----------------------------------------------------------------------------------------


async def ours(count: int) -> dict[str, Any]:
    from envkit.image.rootfs import RootSpec, ensure_rootfs
    from envkit.sandbox.limits import Limits
    from envkit.sandbox.prepare import cache_directory
    from envkit.sandbox.session import own_session
    from envkit.sandbox.spec import BoxSpec
    from envkit.sandbox.stage import files_uid

    root = ensure_rootfs(RootSpec(owner_uid=files_uid()), cache_directory())
    slots = asyncio.Semaphore(AT_ONCE)
    began = time.monotonic()
    async with own_session() as session:
        warm_s, began = time.monotonic() - began, time.monotonic()

        async def open_box(name: str) -> None:
            spec = BoxSpec(name=name, root=root, limits=Limits())
            async with slots:
                await session.channel.ask("open", box=name, spec=spec.to_dict())

        async def start(name: str) -> Any:
            async with slots:
                return await start_one(session, name)

        names = [f"agent{number}" for number in range(count)]
        await asyncio.gather(*(open_box(name) for name in names))
        boxes_s = time.monotonic() - began
        before, began = available_mib(), time.monotonic()
        gateways = await asyncio.gather(*(start(name) for name in names))
        seconds, added = time.monotonic() - began, before - available_mib()
        run = session.stage.name.removeprefix("envkit-run-")
        loops = [processes(run, name) for name in names]
        answers = [await ask(gateway.port, gateway.address.token) for gateway in gateways]
        return {
            "who": "ours",
            "count": count,
            "seconds": seconds,
            "added_mib": added,
            "warm_s": warm_s,
            "sibling_boxes_s": boxes_s,
            "processes": sum(map(len, loops)),
            "private_mib": [sum(map(private_mib, pids)) for pids in loops],
            "unconfined": sum(not all(map(confined, pids)) for pids in loops),
            "answers": sorted(set(answers)),
        }


async def start_one(session: Any, name: str) -> Any:
    from envkit.sandbox.gateway import start_gateway

    async def request(fds: list[int]) -> object:
        return await session.channel.ask("gateway", fds, box=name, start_s=ANSWER_S)

    return await start_gateway(
        request, servers=SERVERS, stage=session.stage, log=Path(os.devnull), seconds=ANSWER_S
    )


def processes(run: str, name: str) -> list[int]:
    """All in the control group of the box of a gateway."""
    from envkit.sandbox.cgroup import Group, find_parent

    parent = find_parent()
    if parent is None:
        raise SystemExit("no control group can be made here: the gateways cannot be told apart")
    pids = Group.named(parent, f"{run}-own-{name}-gateway").pids()
    if not pids:
        raise SystemExit(f"the gateway of {name} is in no group of its own")
    return sorted(pids)


def confined(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text().split("\n")
    facts = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    return (int(facts["CapEff"], 16), int(facts["CapBnd"], 16), facts["NoNewPrivs"]) == (0, 0, "1")


# --- the peer -------------------------------------------------------------------------------------


def spawned(folder: str, told: Any) -> None:
    """A loop of the peer: imports what the nursery has imported, and serves the same."""
    for name in ("harbor.trial.single_step", "harbor.verifier.verifier", *OURS_TOO):
        import_module(name)
    from envkit.servers.command import LocalRunner
    from envkit.servers.config import GatewayConfig
    from envkit.servers.gateway import serve

    config = GatewayConfig(
        root=Path(folder), apps_data=Path(folder), servers=SERVERS, token="t", command_root=folder
    )
    listening = socket.create_server(("127.0.0.1", 0))
    told.send(listening.getsockname()[1])
    asyncio.run(serve(config, LocalRunner(), mcp_socket=listening, data_socket=None))


def peer(count: int) -> dict[str, Any]:
    spawn = multiprocessing.get_context("spawn")
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        before, began = available_mib(), time.monotonic()

        def start(_number: int) -> tuple[Any, int]:
            ours_end, theirs = spawn.Pipe(duplex=False)
            process = spawn.Process(target=spawned, args=(folder, theirs), daemon=True)
            process.start()
            theirs.close()
            if not ours_end.poll(ANSWER_S):
                raise SystemExit("a spawned process did not come up")
            port = ours_end.recv()
            asyncio.run(get(port, "/health"))
            return process, port

        with ThreadPoolExecutor(2 * cores) as pool:
            started = list(pool.map(start, range(count)))
        seconds, added = time.monotonic() - began, before - available_mib()
        answers = {asyncio.run(ask(port, "t")) for _, port in started}
        private = [private_mib(process.pid) for process, _ in started]
        for process, _ in started:
            process.kill()
        for process, _ in started:
            process.join()
    return {
        "who": "spawn",
        "count": count,
        "seconds": seconds,
        "added_mib": added,
        "private_mib": private,
        "answers": sorted(answers),
    }


# --- measuring ------------------------------------------------------------------------------------


async def ask(port: int, token: str) -> str:
    """What it serves, by server."""
    status, body = await get(port, "/apps", token)
    if status != 200:
        raise SystemExit(f"/apps answered {status}: {body[:200]}")
    return json.dumps(json.loads(body), sort_keys=True)


async def get(port: int, path: str, token: str = "") -> tuple[int, str]:
    async with asyncio.timeout(ANSWER_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
    headers, _, body = answer.partition("\r\n\r\n")
    return int(headers.split()[1]), body


def private_mib(pid: int) -> float:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private_")) / 1024


def available_mib() -> float:
    rows = Path("/proc/meminfo").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("MemAvailable")) / 1024


def main(count: int) -> int:
    rounds: list[dict[str, Any]] = []
    for _ in range(ROUNDS):
        for measure in (lambda: peer(SPAWNED), lambda: asyncio.run(ours(count))):
            rounds.append(measure())
            show(rounds[-1])
            time.sleep(SETTLE_S)
    mine = [each for each in rounds if each["who"] == "ours"]
    theirs = [each for each in rounds if each["who"] == "spawn"]
    faster = each_of(theirs, "seconds") / each_of(mine, "seconds")
    smaller = private_of(theirs) / private_of(mine)
    worst_s, worst_mib = (max(each[key] for each in mine) for key in ("seconds", "added_mib"))
    answers = {answer for each in rounds for answer in each["answers"]}
    unconfined = sum(each["unconfined"] for each in mine)
    breaches = failed(
        {
            f"{worst_s:.1f} s": worst_s <= SECONDS,
            f"{worst_mib:,.0f} MiB": worst_mib <= ADDED_MIB,
            f"{len(answers)} different answers": len(answers) == 1,
            f"{unconfined} unconfined": unconfined == 0,
            f"{faster:.1f} times as fast": faster >= FASTER,
            f"{smaller:.1f} times as small": smaller >= SMALLER,
        }.items()
    )
    result = {
        "what": f"{count} confined forks of a warmed process, against multiprocessing spawn",
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "faster": round(faster, 2),
        "smaller": round(smaller, 2),
        "breaches": breaches,
        "rounds": [raw(each) for each in rounds],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"bar07_fork_{count}.json"
    path.write_text(json.dumps(result) + "\n")
    print(f"{'; '.join(breaches) or 'holds'}: {path.relative_to(ROOT)}")
    print(f"spawn / ours: {faster:.1f} in seconds, {smaller:.1f} in private memory")
    return 1 if breaches else 0


def each_of(rounds: list[dict[str, Any]], key: str) -> float:
    """Of one process, over all rounds."""
    return sum(each[key] for each in rounds) / sum(each["count"] for each in rounds)


def private_of(rounds: list[dict[str, Any]]) -> float:
    """MiB of one loop, over all rounds."""
    return statistics.mean(mib for each in rounds for mib in each["private_mib"])


def failed(checks: Iterable[tuple[str, bool]]) -> list[str]:
    return [name for name, holds in checks if not holds]


def show(done: dict[str, Any]) -> None:
    each_ms = 1000 * done["seconds"] / done["count"]
    private = statistics.median(done["private_mib"])
    more = {key: round(done[key], 1) for key in ("warm_s", "sibling_boxes_s") if key in done}
    print(
        f"{done['who']:<6}{done['count']:>4} in {done['seconds']:.1f} s, {each_ms:.1f} ms each,"
        f" {done['added_mib'] / done['count']:.1f} MiB each, private {private:.1f} MiB {more}",
        flush=True,
    )


def raw(done: dict[str, Any]) -> dict[str, Any]:
    kept = {key: round(v, 3) if isinstance(v, float) else v for key, v in done.items()}
    return {**kept, "private_mib": [round(each, 2) for each in done["private_mib"]]}


if __name__ == "__main__":
    raise_file_limit()
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 550))
