# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The ranks: those that torchrun started, or this process alone.

Contract: whatever one rank draws in a step is a function of the seed, the step and the rank, so
that nothing of a generator has to be kept for a run that is gone on with.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist

COLLECTIVE_S: Final = 1800
"""How long a rank waits for the others: as long as the longest micro-batch may take one of them."""

MEETING: Final = "RLTRAIN_MEETING"
"""Where ranks of one machine meet; those of torchrun meet where it says."""


@contextmanager
def joined(*, deterministic: bool = False) -> Generator[int]:
    """Be one of the ranks; gives its number."""
    before = torch.are_deterministic_algorithms_enabled()
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    _join()
    alone = dist.get_world_size() == 1
    try:
        yield dist.get_rank()
    except BaseException:
        if alone:  # else the others would hear of the end before anybody hears why
            dist.destroy_process_group()
        raise
    else:
        dist.destroy_process_group()
    finally:
        torch.use_deterministic_algorithms(before)


def _join() -> None:
    backend, deadline = "gloo", timedelta(seconds=COLLECTIVE_S)
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        backend = "cpu:gloo,cuda:nccl"
    if "RANK" in os.environ:
        dist.init_process_group(
            backend,
            init_method=os.environ.get(MEETING, "env://"),
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
            timeout=deadline,
        )
        return
    alone = dist.HashStore()
    dist.init_process_group(backend, store=alone, rank=0, world_size=1, timeout=deadline)


def seed_step(seed: int, step: int, rank: int) -> None:
    """Begin all generators of torch anew for a step."""
    digest = hashlib.sha256(f"{seed}/{step}/{rank}".encode()).digest()
    torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def all_of[T](mine: T) -> list[T]:
    """What every rank has to say, by rank; all ranks ask together."""
    told: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(told, mine)
    return told


def any_rank(mine: bool) -> bool:
    """Whether it holds on some rank; all ranks ask together."""
    found = torch.tensor(int(mine))
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return bool(found.item())


def me() -> int:
    """This process's rank."""
    return dist.get_rank()
