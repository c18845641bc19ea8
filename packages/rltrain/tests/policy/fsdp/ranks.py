# SPDX-License-Identifier: Apache-2.0
"""The ranks of a test: ``ranks.py WORLD MODEL CASES PLACE``.

Each takes the gradient of the same batch as each case says, and rank 0 leaves all of them in PLACE.
They are forked from here, so that torch and transformers are imported once. Not a test by itself.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from envkit.trajectory.types import Stop
from rltrain.batch.cost import Cost
from rltrain.batch.micro import cut
from rltrain.batch.sample import Sample
from rltrain.batch.stamp import Stamped, stamp
from rltrain.objective.aggregate import AggregateConfig
from rltrain.objective.config import ObjectiveConfig
from rltrain.objective.loss import LOSSES
from rltrain.objective.terms import TermsConfig
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.types import Goal

VOCABULARY = 97
ENTROPY, KL = 0.01, 0.02


def samples(count: int = 26) -> list[Sample]:
    """Six prompts in turn, so that any cut parts them; some dead, some without a valid reward, one
    prompt all dead."""
    drawn = np.random.default_rng(3)
    made: list[Sample] = []
    for number in range(count):
        length = int(drawn.integers(6, 60))
        mask = drawn.random(length) < 0.5
        mask[0], mask[-1] = False, True
        logprobs = np.where(mask, -drawn.exponential(3.0, length), np.nan).astype(np.float32)
        valid = number % 7 != 0
        made.append(
            Sample(
                trajectory_id=f"t{number}",
                group_id=f"g{number % 6}",
                token_ids=drawn.integers(0, VOCABULARY, length).astype(np.int32),
                mask=mask,
                logprobs=logprobs,
                weight_version=np.where(mask, 1, -1).astype(np.int32),
                temperature=1.0,
                reward=float(drawn.integers(0, 3)) if valid else None,
                valid=valid,
                live=valid and number % 5 != 0 and number % 6 != 4,
                stop=Stop.FINAL,
                environment_tokens=3,
            )
        )
    return made


def goal(case: dict[str, Any]) -> Goal:
    return Goal(loss=LOSSES[case["loss"]](), terms=TermsConfig(entropy=ENTROPY, kl=KL))


def stamped_of(case: dict[str, Any], rank: int, world: int) -> Stamped:
    """As the product does it; as the seeded bug does it where the case says so."""
    config = ObjectiveConfig(aggregate=AggregateConfig(name=case["aggregate"]))
    if not case.get("by_rank"):
        return stamp(config, shuffled(case))
    return stamp(config, shuffled(case)[rank::world])


def shuffled(case: dict[str, Any]) -> list[Sample]:
    made = samples()
    random.Random(case["seed"]).shuffle(made)
    return made


def reference_of(states: torch.Tensor) -> torch.Tensor:
    """Some log-probs that depend on nothing but the token."""
    return -1.0 - (states.double() % 7) / 10


def run(rank: int, world: int, meeting: str, model: str, cases: list[dict[str, Any]]) -> Any:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    found: list[dict[str, Any]] = []
    backends: dict[str, FsdpBackend] = {}
    for case in cases:
        dtype = case["dtype"]
        if dtype not in backends:
            backends[dtype] = FsdpBackend(PolicyConfig(path=model, dtype=dtype), OptimizerConfig())
        backend = backends[dtype]
        stamped = stamped_of(case, rank, world)
        parts, mine = (1, 0) if case.get("by_rank") else (world, rank)
        batches = cut(stamped, Cost(a=1.0, b=0.01), cap=case["cap"], ranks=parts)[mine]
        batches = [replace(each, reference=reference_of(each.targets)) for each in batches]
        if case.get("scored"):
            backend.score(batches[0])
        loss, seen = backend.gradients(batches, goal(case))
        whole = torch.cat([each.flatten() for _, each in backend.gradient()])
        backend.forget()
        found.append({"loss": loss, "gradient": whole.clone(), "batches": len(batches)})
        del seen
    dist.destroy_process_group()
    return found


def forked(rank: int, world: int, model: str, cases: list[dict[str, Any]], place: Path) -> int:
    """Process id of a rank."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        found = run(rank, world, str(place / "meeting"), model, cases)
        if rank == 0:
            torch.save(found, place / "found.pt")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main(world: int, model: str, cases: Path, place: Path) -> int:
    told = json.loads(cases.read_text("utf-8"))
    pids = [forked(rank, world, model, told, place) for rank in range(world)]
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
