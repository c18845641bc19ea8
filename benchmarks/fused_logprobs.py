# SPDX-License-Identifier: Apache-2.0
"""Fused log-probs and entropies against the plain ones: ``python benchmarks/fused_logprobs.py``.

Run by the trainer's environment, which has torch: ``.nox/trainer/bin/python``. Values and gradients
are compared first. Memory is what a process of its own has at most beyond what it had before
(VmHWM, set back by clear_refs), forward and backward, at a vocabulary of 152,064: ours at 8,192
tokens, the plain one at 1,024 and, because it is made of nothing but tensors of tokens by
vocabulary, times eight. Time is forward and backward at 2,048 tokens, rounds of both by turns, the
median of each.

Holds when values and gradients differ by at most 1e-5, ours takes at most a fifth of the memory and
1.35 times the time.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from parts.machine import machine

from rltrain.policy.fused import fused, plain

RESULTS = Path(__file__).resolve().parent / "results"
VOCABULARY, HIDDEN = 152_064, 512
LONG, SHARE, TIMED = 8192, 1024, 2048
ROUNDS = 5
LESS, SLOWER, NEAR = 1 / 5, 1.35, 1e-5
WHO: dict[str, Callable[..., Any]] = {"plain": plain, "fused": fused}


def drawn(tokens: int, vocabulary: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    make = torch.Generator().manual_seed(0)
    hidden = torch.randn(tokens, HIDDEN, generator=make).requires_grad_()
    weight = (torch.randn(vocabulary, HIDDEN, generator=make) * 0.05).requires_grad_()
    return hidden, weight, torch.randint(0, vocabulary, (tokens,), generator=make)


def step(who: str, parts: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Forward and backward of a policy term with an entropy bonus."""
    hidden, weight, ids = parts
    scored = WHO[who](hidden, weight, ids)
    loss = scored.logp.sum() / len(ids) - 0.01 * scored.entropy.sum() / len(ids)
    gradients = torch.autograd.grad(loss, (hidden, weight))
    return (scored.logp.detach(), scored.entropy.detach(), *gradients)


def difference() -> float:
    """The largest, relative to the largest value of its kind."""
    parts = drawn(256, 8_192)
    pairs = zip(step("plain", parts), step("fused", parts), strict=True)
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in pairs)


def peak_mib(who: str, tokens: int) -> float:
    """In a process of its own."""
    command = [sys.executable, __file__, "memory", who, str(tokens)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return float(said.stdout.split()[-1])


def memory(who: str, tokens: int) -> float:
    parts = drawn(tokens, VOCABULARY)
    step(who, tuple(each[:8] if n != 1 else each for n, each in enumerate(parts)))
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    step(who, parts)
    return (resident("VmHWM") - before) / 1024


def resident(name: str) -> int:
    """KiB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def times() -> dict[str, list[float]]:
    parts = drawn(TIMED, VOCABULARY)
    seconds: dict[str, list[float]] = {who: [] for who in WHO}
    for number in range(ROUNDS + 1):
        for who in WHO:
            began = time.perf_counter()
            step(who, parts)
            if number:
                seconds[who].append(round(time.perf_counter() - began, 3))
    return seconds


def main() -> int:
    off = difference()
    ours, plain_share = peak_mib("fused", LONG), peak_mib("plain", SHARE)
    theirs = plain_share * LONG / SHARE
    seconds = times()
    slower = statistics.median(seconds["fused"]) / statistics.median(seconds["plain"])
    breaches = [
        said
        for said, holds in {
            f"differs by {off:.1e}": off <= NEAR,
            f"{ours / theirs:.2f} of the memory": ours <= LESS * theirs,
            f"{slower:.2f} times the time": slower <= SLOWER,
        }.items()
        if not holds
    ]
    result = {
        "what": f"log-prob and entropy of {LONG} tokens over {VOCABULARY}, {HIDDEN} wide, float32",
        "command": " ".join(["python", *sys.argv]),
        "machine": {**machine(), "torch": torch.__version__, "threads": torch.get_num_threads()},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "largest_difference": off,
        "peak_mib": {"fused": ours, f"plain at {SHARE} tokens": plain_share},
        "seconds": seconds,
        "breaches": breaches,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "fused_logprobs.json"
    path.write_text(json.dumps(result) + "\n")
    print(f"{ours:,.0f} MiB at {LONG} tokens; plain {plain_share:,.0f} at {SHARE}")
    print(f"{'; '.join(breaches) or 'holds'}: {path.relative_to(RESULTS.parent.parent)}")
    print(f"ours / plain: {ours / theirs:.3f} of the memory, {slower:.2f} times the time")
    return 1 if breaches else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        print(memory(sys.argv[2], int(sys.argv[3])))
        sys.exit(0)
    sys.exit(main())
