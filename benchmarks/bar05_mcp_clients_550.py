# SPDX-License-Identifier: Apache-2.0
"""Bar 5: 550 MCP clients at once: ``python -m nox -s bench -- bar05_mcp_clients_550 [550]``.

Ours is one forked process a loop, as in the product: real trials of ``envkit preflight``, held in
their act phase, each with envkit's client to its own gateway in its own box, which takes its turns
to work as the product's agents do; a wait for one is part of the time. The peer is one bare
process with all the clients, the SDK's own, on one event loop. Both talk to the same gateways, in
turn, make the same calls and must get the same text. Connecting and listing is part of the time.

Holds when ours has no error and no timeout, its event loops stall at most 250 ms at the p99, and it
does at least three times the peer's calls a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.bar05_loop import SOCKET, TASK, Done, make_calls, recorded_calls, stalls
from parts.machine import machine, raise_file_limit

from envkit.preflight.launcher import ForkServerLauncher
from envkit.preflight.types import RunOptions, TrialEnded, TrialSpec

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
RATIO, STALL_MS = 3.0, 250.0
ROUNDS = 2
WATCHED = 10
"""One loop in so many times its own stalls: 550 clocks would be a load of their own."""
UP_S, ROUND_S = 240.0, 240.0
LINE_BYTES = 1 << 20


# --- the peer: all of them on one loop ------------------------------------------------------------


async def bare(endpoints: list[dict[str, str]]) -> dict[str, Any]:
    stalled: list[float] = []
    clock = asyncio.create_task(stalls(stalled))
    began, before_s = time.monotonic(), time.process_time()
    done = await asyncio.gather(*(bare_client(each) for each in endpoints))
    seconds, done[0].cpu_s = time.monotonic() - began, time.process_time() - before_s
    clock.cancel()
    return {"seconds": seconds, "done": [vars(each) for each in done], "stalls_ms": stalled}


async def bare_client(endpoint: dict[str, str]) -> Done:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    done = Done()
    try:
        headers = {"Authorization": f"Bearer {endpoint['token']}"}
        async with httpx2.AsyncClient(headers=headers, timeout=ROUND_S) as http:
            transport = streamable_http_client(endpoint["url"], http_client=http)
            async with Client(transport, read_timeout_seconds=ROUND_S) as client:
                await client.list_tools()

                async def call(name: str, arguments: dict[str, Any]) -> str:
                    result = await client.call_tool(name, arguments)
                    if result.is_error:
                        raise RuntimeError(str(result.content)[:200])
                    return "\n".join(part.text for part in result.content)

                await make_calls(call, done)
    except Exception as error:
        done.error, done.timeout = f"{type(error).__name__}: {error}", "imeout" in repr(error)
    return done


# --- the rounds -----------------------------------------------------------------------------------


@dataclass
class Client:
    endpoint: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def measure(count: int) -> dict[str, Any]:
    clients: list[Client] = []
    all_up = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = json.loads(await reader.readline())
        clients.append(Client(hello, reader, writer))
        if len(clients) == count:
            all_up.set()

    with tempfile.TemporaryDirectory() as holder:
        os.environ[SOCKET] = f"{holder}/rounds.sock"
        server = await asyncio.start_unix_server(
            greet, os.environ[SOCKET], limit=LINE_BYTES, backlog=count
        )
        began = time.monotonic()
        trials = asyncio.create_task(run_trials(count, Path(holder)))
        up = asyncio.create_task(all_up.wait())
        await asyncio.wait({trials, up}, timeout=UP_S, return_when=asyncio.FIRST_COMPLETED)
        if not all_up.is_set():
            raise SystemExit(f"{len(clients)} of {count} loops came up: {trials}")
        up_s = time.monotonic() - began
        rounds: list[dict[str, Any]] = []
        for number in range(ROUNDS):
            rounds.append({"who": "bare", **await round_bare(clients, holder)})
            show(rounds[-1])
            rounds.append({"who": "ours", **await round_ours(clients)})
            show(rounds[-1])
            print(f"round {number + 1} of {ROUNDS} done", flush=True)
        trials.cancel()
        await asyncio.wait({trials})
        server.close()
    return {"up_s": up_s, "rounds": rounds}


async def run_trials(count: int, out: Path) -> None:
    """Run until cancelled; then everything is killed, since no verdict is wanted here."""
    options = RunOptions(concurrency=count, out_dir=out, run_token=secrets.token_hex(8))
    specs = [
        TrialSpec(
            trial_id=f"loop__{number:03d}",
            task_dir=TASK,
            sample=number,
            agent="agents.bar05_loop:Loop",
            out_dir=out,
            env="local",
        )
        for number in range(count)
    ]
    async with aclosing(ForkServerLauncher("local", options).run(specs)) as events:
        async for event in events:
            if isinstance(event, TrialEnded):
                raise SystemExit(f"{event.record.trial_id} ended early: {event.record.fault}")


async def round_ours(clients: list[Client]) -> dict[str, Any]:
    async def one(number: int, client: Client) -> dict[str, Any]:
        client.writer.write(json.dumps({"watched": number % WATCHED == 0}).encode() + b"\n")
        return json.loads(await client.reader.readline())

    began = time.monotonic()
    work = asyncio.gather(*(one(number, client) for number, client in enumerate(clients)))
    done = await asyncio.wait_for(work, ROUND_S)
    seconds = time.monotonic() - began
    return {
        "seconds": seconds,
        "done": done,
        "stalls_ms": [stall for each in done for stall in each["stalls_ms"]],
    }


async def round_bare(clients: list[Client], holder: str) -> dict[str, Any]:
    told = Path(holder) / "endpoints.json"
    told.write_text(json.dumps([client.endpoint for client in clients]))
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--bare", str(told), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), ROUND_S)
    return json.loads(out)


# --- what it comes to -----------------------------------------------------------------------------


def main(count: int) -> int:
    measured = asyncio.run(measure(count))
    figures = {who: figures_of(measured["rounds"], who) for who in ("ours", "bare")}
    ratio = figures["ours"]["calls_per_s"] / figures["bare"]["calls_per_s"]
    texts = {each["texts"] for r in measured["rounds"] for each in r["done"] if not each["error"]}
    breaches = [
        name
        for name, holds in {
            f"errors {figures['ours']['errors']}": figures["ours"]["errors"] == 0,
            f"timeouts {figures['ours']['timeouts']}": figures["ours"]["timeouts"] == 0,
            f"stall p99 {figures['ours']['stall_p99_ms']} ms": (
                figures["ours"]["stall_p99_ms"] <= STALL_MS
            ),
            f"{len(texts)} different answers": len(texts) == 1,
            f"ratio {ratio:.2f}": ratio >= RATIO,
        }.items()
        if not holds
    ]
    result = {
        "what": f"{count} MCP clients at once: a forked process each, against one bare process",
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "clients": count,
        "calls_each": len(recorded_calls()),
        "up_s": round(measured["up_s"], 2),
        "figures": figures,
        "ratio": round(ratio, 3),
        "breaches": breaches,
        "rounds": [raw(each) for each in measured["rounds"]],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"bar05_mcp_clients_{count}.json"
    path.write_text(json.dumps(result) + "\n")
    print(f"{'; '.join(breaches) or 'holds'}: {path.relative_to(ROOT)}")
    print(f"ours / bare: {ratio:.2f}")
    return 1 if breaches else 0


def figures_of(rounds: list[dict[str, Any]], who: str) -> dict[str, Any]:
    mine = [each for each in rounds if each["who"] == who]
    done = [each for r in mine for each in r["done"]]
    latencies = [1000 * s for each in done for s in each["latencies_s"]]
    stalled = [stall for r in mine for stall in r["stalls_ms"]]
    return {
        "calls_per_s": round(len(latencies) / sum(r["seconds"] for r in mine), 1),
        "call_p50_ms": at(latencies, 0.5),
        "call_p99_ms": at(latencies, 0.99),
        "stall_p99_ms": at(stalled, 0.99),
        "stall_max_ms": at(stalled, 1.0),
        "client_cpu_ms_a_call": round(
            1000 * sum(each["cpu_s"] for each in done) / max(1, len(latencies)), 2
        ),
        "errors": sum(bool(each["error"]) for each in done),
        "timeouts": sum(each["timeout"] for each in done),
    }


def at(values: list[float], share: float) -> float:
    ordered = sorted(values) or [0.0]
    return round(ordered[max(0, -int(-share * len(ordered) // 1) - 1)], 1)


def show(done: dict[str, Any]) -> None:
    figures = figures_of([done], done["who"])
    errors = statistics.multimode([each["error"] for each in done["done"] if each["error"]])
    print(f"{done['who']}  {done['seconds']:.1f} s  {figures}", *errors[:1], flush=True)


def raw(done: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds to a tenth; more digits are noise."""
    return {
        "who": done["who"],
        "seconds": round(done["seconds"], 3),
        "calls": sum(len(each["latencies_s"]) for each in done["done"]),
        "latencies_ms": [
            [round(1000 * s, 1) for s in each["latencies_s"]] for each in done["done"]
        ],
        "stalls_ms": [round(stall, 1) for stall in done["stalls_ms"]],
        "errors": [each["error"] for each in done["done"] if each["error"]],
    }


if __name__ == "__main__":
    raise_file_limit()
    if sys.argv[1:2] == ["--bare"]:
        print(json.dumps(asyncio.run(bare(json.loads(Path(sys.argv[2]).read_text())))))
        sys.exit(0)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 550))
