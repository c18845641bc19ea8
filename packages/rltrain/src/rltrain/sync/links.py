# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The ways to an engine: a message is made once for all of them, then delivered to each.

Contract: a delivery is over when the engine has loaded what was in it. Whatever fails first, on
either side, is what is told; the other side is not waited for, and its thread ends by its deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from pathlib import Path
from threading import Thread
from typing import Any, Final, Protocol

import torch
from safetensors.torch import save_file
from torch import Tensor

from envkit.durable import part_of, publish
from rltrain.refused import Refused
from rltrain.sync.buckets import Bucket
from rltrain.sync.config import SyncConfig
from rltrain.sync.control import Control
from rltrain.sync.errors import OperationFailed
from rltrain.sync.group import Group, Host, expect_usable
from rltrain.sync.types import Replica

GRACE_S: Final = 5.0
"""A library's own deadline is heard of before ours."""


class Link:
    """To one engine, by a group of its own or by files."""

    def __init__(self, config: SyncConfig, method: str, replica: Replica) -> None:
        """Raises Refused where its URL is none."""
        self.replica = replica
        self.control = Control(replica.url)
        self.dtype = torch.float32
        self._config, self._method = config, method
        self._group: Group | None = None

    def join(self) -> None:
        """Meet the engine.

        Raises:
            OperationFailed: it does not answer, or was started without what a sync needs.
            Refused: its ranks are not as many as was said.
        """
        seconds = self._config.join_s
        told = self.control.call("join", "sync_hello", seconds)
        if len(told) != self.replica.ranks:
            raise Refused(
                f"{self.replica.name}: has {len(told)} ranks and not {self.replica.ranks};"
                " say how many"
            )
        self.dtype = getattr(torch, told[0]["dtype"])
        if self._method == "file":
            self._post("join", "init_weight_transfer_engine", seconds, {"init_info": {}})
        else:
            self._meet(seconds)

    def _meet(self, seconds: float) -> None:
        host = Host(
            self._method,
            self._config.address,
            1 + self.replica.ranks,
            meet_s=seconds,
            transfer_s=self._config.transfer_s,
        )
        told = {"init_info": {"meeting": host.meeting.plain()}}
        self._group, _ = both(
            "join",
            seconds,
            host.met,
            lambda: self._post("join", "init_weight_transfer_engine", seconds, told),
        )

    def deliver(self, bucket: Bucket, message: Tensor | Path) -> None:
        """Have a bucket loaded.

        Raises:
            OperationFailed: it did not arrive, or the engine did not take it.
        """
        op, seconds = f"transfer of {bucket.items[0].name}", self._config.transfer_s
        info: dict[str, Any] = {"items": [each.plain() for each in bucket.items]}
        if isinstance(message, Path):
            info["file"] = str(message)
            self._post(op, "update_weights", seconds, {"update_info": info})
            return
        group = self._group
        assert group is not None
        both(
            op,
            seconds,
            lambda: group.broadcast(message),
            lambda: self._post(op, "update_weights", seconds, {"update_info": info}),
        )

    def _post(self, op: str, route: str, seconds: float, body: dict[str, Any]) -> None:
        self.control.post(op, f"/{route}", seconds, body)


class Messages(Protocol):
    """How a bucket becomes what is delivered."""

    def made(self, bucket: Bucket) -> Tensor | Path:
        """Once for all engines."""
        ...

    def forget(self) -> None:
        """It is delivered everywhere."""
        ...


class Buffers:
    """Messages of a group."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def made(self, bucket: Bucket) -> Tensor:
        """Flat bytes."""
        return bucket.packed(self._device)

    def forget(self) -> None:
        """Nothing is kept."""


class Files:
    """A file that is there whole or not at all, and only until every engine has read it."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "bucket.safetensors"

    def made(self, bucket: Bucket) -> Path:
        """Raises Refused where it cannot be written."""
        names = [item.name for item in bucket.items]
        part = part_of(self._file)
        tensors = {
            name: each.cpu().contiguous().clone()
            for name, each in zip(names, bucket.tensors, strict=True)
        }
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            save_file(tensors, part)
            publish(part, self._file)
        except OSError as error:
            line = f"sync.directory: {self._file.parent}: {error.strerror or error}; make room"
            raise Refused(line) from error
        return self._file

    def forget(self) -> None:
        """Take it away."""
        self._file.unlink(missing_ok=True)


def messages(config: SyncConfig, method: str) -> Messages:
    """Those of a method."""
    expect_usable(method)
    if method == "file":
        return Files(Path(config.directory))
    on = torch.device("cuda", torch.cuda.current_device()) if method == "nccl" else "cpu"
    return Buffers(torch.device(on))


def later[T](work: Callable[[], T]) -> Future[T]:
    """Work in a thread that nobody has to wait for, also at the end of the process."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


def both(op: str, seconds: float, *works: Callable[[], Any]) -> list[Any]:
    """What all of them come to, side by side.

    Raises:
        OperationFailed: the first that failed, or they took too long together.
    """
    futures: Sequence[Future[Any]] = [later(work) for work in works]
    done, pending = wait(futures, seconds + GRACE_S, FIRST_EXCEPTION)
    for each in done:
        if error := each.exception():
            raise _named(op, error) from error
    if pending:
        raise OperationFailed(f"{op}: not over within {seconds:g} s")
    return [each.result() for each in futures]


def _named(op: str, error: BaseException) -> BaseException:
    """What a library raises is of the operation that it was in."""
    if isinstance(error, RuntimeError):
        line = str(error).strip().partition("\n")[0]
        return OperationFailed(f"{op}: {line}")
    return error
