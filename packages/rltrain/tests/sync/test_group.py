# SPDX-License-Identifier: Apache-2.0
"""Messages from the trainer to the ranks of an engine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest
import torch
from torch import Tensor

from rltrain.refused import Refused
from rltrain.sync.group import Group, Host, joined
from rltrain.sync.links import later

pytestmark = pytest.mark.trainer

MEET_S, SHORT_S = 20.0, 0.3


def met(ranks: int, transfer_s: float = MEET_S) -> tuple[Group, list[Group]]:
    """The trainer's side, and the engine's."""
    host = Host("gloo", "127.0.0.1", 1 + ranks, meet_s=MEET_S, transfer_s=transfer_s)
    others: list[Future[Group]] = [
        later(lambda rank=rank: joined(host.meeting, rank)) for rank in range(1, 1 + ranks)
    ]
    return host.met(), [each.result(MEET_S) for each in others]


def received(group: Group, like: Tensor) -> Callable[[], Tensor]:
    def work() -> Tensor:
        buffer = torch.empty_like(like)
        group.broadcast(buffer)
        return buffer

    return work


@pytest.mark.parametrize("ranks", [1, 2])
def test_every_rank_of_an_engine_gets_what_the_trainer_sends(ranks: int) -> None:
    sender, others = met(ranks)
    for size in (16, 100_000):
        sent = torch.arange(size).to(torch.uint8)
        waiting = [later(received(each, sent)) for each in others]
        sender.broadcast(sent)
        assert all(torch.equal(each.result(MEET_S), sent) for each in waiting)


def test_whoever_waits_for_a_silent_peer_hears_of_it() -> None:
    sender, (other,) = met(1, transfer_s=SHORT_S)
    with pytest.raises(RuntimeError, match="Timed out waiting 300ms"):
        other.broadcast(torch.empty(16, dtype=torch.uint8))
    del sender


def test_whoever_sends_to_a_peer_that_is_gone_hears_of_it() -> None:
    sender, others = met(1)
    others.clear()
    large = torch.zeros(1 << 25, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match=r"closed|reset|Broken"):
        sender.broadcast(large)


def test_a_meeting_that_nobody_comes_to_ends() -> None:
    host = Host("gloo", "127.0.0.1", 2, meet_s=SHORT_S, transfer_s=SHORT_S)
    with pytest.raises(RuntimeError):
        host.met()


def test_nccl_without_a_gpu_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Refused, match="nccl needs a GPU, and the trainer has none; take gloo"):
        Host("nccl", "127.0.0.1", 2, meet_s=1.0, transfer_s=1.0)
