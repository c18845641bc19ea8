# SPDX-License-Identifier: Apache-2.0
"""Steps, kept and gone on with: ``steps.py MODEL PLACE`` prints what held. No test by itself."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from ranks import goal, reference_of, stamped_of

from rltrain.batch.cost import Cost
from rltrain.batch.micro import cut
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend

CASE = {"seed": 0, "loss": "dppo", "aggregate": "prompt_mean"}


def opened(model: str) -> FsdpBackend:
    optimizer = OptimizerConfig(learning_rate=1e-3, warmup_steps=4)
    return FsdpBackend(PolicyConfig(path=model, dtype="float32"), optimizer)


def weights(backend: FsdpBackend) -> dict[str, torch.Tensor]:
    return {name: each.clone() for name, each in backend.weights()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> list[bool]:
    return [torch.equal(each, other[name]) for name, each in one.items()]


def main(model: str, place: Path) -> dict[str, bool]:
    meeting = f"file://{place / 'meeting'}"
    dist.init_process_group("gloo", init_method=meeting, rank=0, world_size=1)
    (batches,) = cut(stamped_of(CASE, 0, 1), Cost(a=1.0, b=0.01), cap=60, ranks=1)
    batches = [replace(each, reference=reference_of(each.targets)) for each in batches]
    whole = opened(model)
    began = weights(whole)
    for _ in range(2):
        whole.score(batches[0])
        whole.step(batches, goal(CASE))
    whole.save(place / "kept")
    kept = weights(whole)
    last = whole.step(batches, goal(CASE))
    again = opened(model)
    again.restore(place / "kept")
    restored = weights(again)
    next_ = again.step(batches, goal(CASE))
    told = [(each.loss, each.gradient_norm, each.learning_rate) for each in (last, next_)]
    return {
        "every parameter moved": not any(same(began, weights(whole))),
        "what was kept is there again": all(same(kept, restored)),
        "the next step is the same": all(same(weights(whole), weights(again))),
        "and tells the same": told[0] == told[1],
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
