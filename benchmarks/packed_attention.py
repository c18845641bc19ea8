# SPDX-License-Identifier: Apache-2.0
"""Attention from sample to sample against a mask: ``python benchmarks/packed_attention.py``.

Run by the trainer's environment: ``.nox/trainer/bin/python``. A policy of the tiny one's sizes
takes the gradient of one packed micro-batch, seven samples of 2,267 tokens (the length that real
trials of the tiny policy have), with ``policy.attention`` ``varlen`` and with ``sdpa``, rounds of
both by turns, the median of each. Memory is VmHWM of a process of its own.

Holds when the gradients differ by at most 1e-5 and varlen is at least four times as fast.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import torch
from parts.machine import machine
from transformers import Qwen3Config, Qwen3ForCausalLM

from rltrain.batch.micro import MicroBatch
from rltrain.objective.loss.dppo import Dppo
from rltrain.objective.terms import TermsConfig
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import joined
from rltrain.policy.types import Goal

RESULTS = Path(__file__).resolve().parent / "results"
SAMPLES, LENGTH, TRAINED = 7, 2267, 108
VOCABULARY, ROUNDS, FASTER, NEAR = 1642, 3, 4.0, 1e-5
KINDS = ("sdpa", "varlen")
GOAL = Goal(loss=Dppo(), terms=TermsConfig())


def made(place: Path) -> Path:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        tie_word_embeddings=True,
    )
    Qwen3ForCausalLM(config).save_pretrained(place)
    return place


def batch() -> MicroBatch:
    """Each sample's last tokens are trained."""
    make = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (SAMPLES * LENGTH,), generator=make)
    ends = torch.arange(LENGTH - TRAINED, LENGTH)
    places = torch.cat([ends + LENGTH * sample for sample in range(SAMPLES)])
    count = len(places)
    return MicroBatch(
        ids=ids,
        positions=torch.arange(LENGTH).repeat(SAMPLES),
        states=places - 1,
        targets=ids[places],
        rollout=torch.full((count,), -7.0),
        advantage=torch.randn(count, generator=make).double(),
        weight=torch.full((count,), 1.0 / count).double(),
        sample=torch.arange(SAMPLES).repeat_interleave(TRAINED),
        version=torch.zeros(count, dtype=torch.int32),
        lengths=(LENGTH,) * SAMPLES,
        which=tuple(range(SAMPLES)),
        temperature=1.0,
    )


def opened(place: Path, kind: str) -> FsdpBackend:
    policy = PolicyConfig(path=str(place), dtype="float32", attention=kind)  # type: ignore[arg-type]
    return FsdpBackend(policy, OptimizerConfig())


def gradient(backend: FsdpBackend, micro: MicroBatch) -> torch.Tensor:
    backend.gradients([micro], GOAL)
    whole = torch.cat([each.flatten() for _, each in backend.gradient()])
    backend.forget()
    return whole


def compared(place: Path) -> tuple[float, dict[str, list[float]]]:
    """How far the gradients are apart, and seconds of each round."""
    micro = batch()
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with joined():
        backends = {kind: opened(place, kind) for kind in KINDS}
        found = {kind: gradient(each, micro) for kind, each in backends.items()}
        for _ in range(ROUNDS):
            for kind, backend in backends.items():
                began = time.perf_counter()
                gradient(backend, micro)
                seconds[kind].append(round(time.perf_counter() - began, 3))
    off = (found["varlen"] - found["sdpa"]).norm() / found["sdpa"].norm()
    return float(off), seconds


def peak_mib(place: Path, kind: str) -> float:
    """In a process of its own."""
    words = [sys.executable, __file__, "memory", str(place), kind]
    said = subprocess.run(words, check=True, capture_output=True, text=True, timeout=600)
    return float(said.stdout.split()[-1])


def memory(place: Path, kind: str) -> float:
    micro = batch()
    with joined():
        backend = opened(place, kind)
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
        gradient(backend, micro)
        return (resident("VmHWM") - before) / 1024


def resident(name: str) -> int:
    """KiB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="packed-attention-") as holder:
        place = made(Path(holder))
        off, seconds = compared(place)
        peaks = {kind: round(peak_mib(place, kind), 1) for kind in KINDS}
    faster = statistics.median(seconds["sdpa"]) / statistics.median(seconds["varlen"])
    holds = off <= NEAR and faster >= FASTER
    result = {
        "what": f"gradient of {SAMPLES} packed samples of {LENGTH} tokens, float32",
        "command": " ".join(["python", *sys.argv]),
        "machine": {**machine(), "torch": torch.__version__, "threads": torch.get_num_threads()},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "gradients_apart": off,
        "peak_mib": peaks,
        "seconds": seconds,
        "holds": holds,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "packed_attention.json").write_text(json.dumps(result) + "\n", "utf-8")
    print(f"gradients apart by {off:.1e}; MiB at the peak: {peaks}")
    print("holds" if holds else "BREACHED")
    print(f"sdpa / varlen: {faster:.2f}")
    return not holds


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        print(memory(Path(sys.argv[2]), sys.argv[3]))
    else:
        sys.exit(main())
