# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The trainer's rank 0 and the ranks of one engine: who a message goes to, and by which library.

Contract: a group of its own for each engine, apart from the default process group, so that engines
come and go one by one. Whoever waits in one for a peer that is gone or silent hears of it: at once
where the connection broke, after ``transfer_s`` else. Such a group is not used again.

`Nccl` is made of the parts of vLLM's own NCCL transfer (`nccl_common`): one communicator, flat
buffers, rank 0 sends. It needs a GPU on both sides and has not been run by us for want of one; its
meeting, its messages and what is done with them are those of `Gloo`.
"""

from __future__ import annotations

import socket
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Protocol, Self

import torch
import torch.distributed as dist
from torch import Tensor

from rltrain.refused import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Where a group comes together. The trainer is its rank 0."""

    method: str
    address: str
    port: int
    world: int
    device: int
    """Of the trainer's GPUs, the one that holds whole tensors."""
    meet_s: float
    """For all ranks to be there."""
    transfer_s: float
    """For one message."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


class Group(Protocol):
    """Messages from rank 0 to all others."""

    @property
    def device(self) -> torch.device:
        """Where its messages lie."""
        ...

    def broadcast(self, buffer: Tensor) -> None:
        """Send on rank 0, receive on others; done when it returns."""
        ...


class Gloo:
    """Over TCP, for CPUs."""

    def __init__(self, store: dist.Store, meeting: Meeting, rank: int) -> None:
        options = dist.ProcessGroupGloo._Options()
        here = meeting.address if rank == 0 else _own_address(meeting.address, meeting.port)
        options._devices = [dist.ProcessGroupGloo.create_device(hostname=here)]
        options._timeout = timedelta(seconds=meeting.meet_s)
        self._group = dist.ProcessGroupGloo(store, rank, meeting.world, options)
        self._how = dist.BroadcastOptions()
        self._how.rootRank = self._how.rootTensor = 0
        self._how.timeout = timedelta(seconds=meeting.transfer_s)

    @classmethod
    def joined(cls, meeting: Meeting, rank: int) -> Self:
        """As an engine's rank; the trainer's side is `Host`."""
        deadline = timedelta(seconds=meeting.meet_s)
        store = dist.TCPStore(meeting.address, meeting.port, None, False, deadline, False)
        return cls(store, meeting, rank)

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    def broadcast(self, buffer: Tensor) -> None:
        """Over TCP."""
        self._group.broadcast([buffer], self._how).wait()


class Nccl:
    """Between GPUs, by vLLM's communicator."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        from vllm.distributed.weight_transfer.nccl_common import stateless_init_process_group

        number = meeting.device if rank == 0 else torch.cuda.current_device()
        self.device = torch.device("cuda", number)
        torch.cuda.set_device(self.device)
        where = (meeting.address, meeting.port)
        self._group = stateless_init_process_group(*where, rank, meeting.world, number)

    def broadcast(self, buffer: Tensor) -> None:
        """Enqueue, and wait until it is through."""
        torch.cuda.set_device(self.device)  # a thread begins on the first
        stream = torch.cuda.current_stream()
        self._group.broadcast(buffer, src=0, stream=stream)
        stream.synchronize()


class Host:
    """The trainer's side of a group that is still to meet."""

    def __init__(
        self, method: str, address: str, world: int, *, meet_s: float, transfer_s: float
    ) -> None:
        """Raises Refused where the method cannot be used here."""
        expect_usable(method)
        self._store = None
        if method == "gloo":
            deadline = timedelta(seconds=meet_s)
            self._store = dist.TCPStore(address, 0, None, True, deadline, False)
        self.meeting = Meeting(
            method=method,
            address=address,
            port=_free_port() if self._store is None else self._store.port,
            world=world,
            device=torch.cuda.current_device() if method == "nccl" else 0,
            meet_s=meet_s,
            transfer_s=transfer_s,
        )

    def met(self) -> Group:
        """The group, once every rank is there."""
        if self._store is None:
            return Nccl(self.meeting, rank=0)
        return Gloo(self._store, self.meeting, rank=0)


def expect_usable(method: str) -> None:
    """Raises Refused where the trainer has not what a method needs."""
    if method == "nccl" and not torch.cuda.is_available():
        raise Refused("sync.method: nccl needs a GPU, and the trainer has none; take gloo")


def joined(meeting: Meeting, rank: int) -> Group:
    """The group, as one of an engine's ranks, from 1."""
    return Nccl(meeting, rank) if meeting.method == "nccl" else Gloo.joined(meeting, rank)


def _own_address(other: str, port: int) -> str:
    """Of this machine, as seen from there; nothing is sent."""
    (family, kind, _, _, where), *_ = socket.getaddrinfo(other, port, type=socket.SOCK_DGRAM)
    with socket.socket(family, kind) as probe:
        probe.connect(where)
        return probe.getsockname()[0]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return found.getsockname()[1]
