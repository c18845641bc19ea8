# SPDX-License-Identifier: Apache-2.0
"""Our extension for an engine that can be told to spoil what it receives, or what it loads.

Only an engine reads this: by ``--worker-extension-cls spoiled_engine.Spoiled``, with this folder on
its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from spoiling import KINDS, Named, Stale

from rltrain.sync import receiver
from rltrain.sync.extension import Extension

_wire: list[Callable[[Iterable[Named]], Iterator[Named]]] = [KINDS["as sent"]]
_load: list[Callable[[Iterable[Named]], Iterator[Named]]] = [KINDS["as sent"]]
_unpacked = receiver.unpacked


def _spoiled(buffer: torch.Tensor, items: Any) -> list[Named]:
    """On the wire."""
    return list(_wire[0](_unpacked(buffer, items)))


_mended = {"end": receiver.refresh, "begin": receiver._forget_kernels}
"""What our receiver does because vLLM leaves it undone."""
_undone: set[str] = set()


def _unless_undone(where: str) -> Callable[[Any], None]:
    return lambda model: None if where in _undone else _mended[where](model)


receiver.unpacked = _spoiled
receiver.refresh = _unless_undone("end")
receiver._forget_kernels = _unless_undone("begin")


class Spoiled(Extension):
    """With a method that spoils all syncs to come."""

    def spoil(self: Any, where: str, kind: str) -> None:
        """``wire`` or ``load``, and one of `KINDS` or ``stale``; or ``begin`` or ``end``, and then
        nothing is mended there."""
        model = self.model_runner.get_model()
        if not hasattr(model, "loads_rightly"):
            model.loads_rightly = model.load_weights
            model.load_weights = lambda weights: model.loads_rightly(_within(weights))
        _wire[0] = _load[0] = KINDS["as sent"]
        _undone.clear()
        if where in _mended:
            _undone.add(where)
            return
        (_wire if where == "wire" else _load)[0] = Stale() if kind == "stale" else KINDS[kind]


def _within(weights: Iterable[Named]) -> Iterator[Named]:
    """The loader is given the same memory with other values in it, as a broken copy leaves it."""
    last: list[Named] = []

    def each() -> Iterator[Named]:
        for pair in weights:
            last[:] = [pair]
            yield pair

    for name, tensor in _load[0](each()):
        arrived, there = last[0]
        if name == arrived and there.shape == tensor.shape and there is not tensor:
            there.copy_(tensor.clone())
            yield name, there
        else:
            yield name, tensor
