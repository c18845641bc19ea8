# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Where what an engine loads comes to lie, and whether it lies there afterwards.

While vLLM's loaders copy a tensor into a parameter, or one of several into a fused one, or a rank's
part of it, every copy is noted: which part of which tensor, to which part of which parameter, with
the fingerprint of what was to be copied. When all is loaded and put into the kernels' own layout,
each of these parts is read back and compared.

Contract: a tensor that caused no copy is unknown; a parameter of which some element was neither
copied nor filled is missing. What a loader made of a tensor by itself, and what a kernel keeps in a
form that cannot be read back, is said to be transformed, and nothing else is said of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from rltrain.sync.fingerprint import fingerprint, unordered
from rltrain.sync.held import packed, readings

_aten = torch.ops.aten
_FILLS: Final = (_aten.fill_.Scalar, _aten.fill_.Tensor, _aten.zero_.default)

EXPERTS: Final = 3
"""Dimensions of a tensor of all experts: theirs is the first."""

type Key = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Offset, size and stride of a part of a tensor, in elements."""


def key(part: Tensor) -> Key:
    """Which part of its storage it is."""
    return part.storage_offset(), tuple(part.shape), tuple(part.stride())


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A copy into a parameter."""

    tensor: str
    """What was loaded."""
    ordered: str | None
    """Fingerprint of what was to be copied; None where the loader made something else of it."""
    loose: int
    """The same in no order."""


class Ledger:
    """Of one update of one model."""

    def __init__(self, model: nn.Module) -> None:
        """Before loaders are prepared for an update."""
        self._model = model
        self._wanted = [name for name, _ in model.named_parameters()]
        self._places: dict[int, str] = {}
        self._tensors: dict[str, Tensor] = {}
        self._notes: dict[str, dict[Key, Note]] = defaultdict(dict)
        self._filled: dict[str, dict[Key, int]] = defaultdict(dict)
        self._received: dict[str, str] = {}
        self._known: set[str] = set()

    def prepared(self) -> None:
        """After they are: parameters are then placeholders that copies can be told apart by."""
        named = [
            *self._model.named_parameters(remove_duplicate=False),
            *self._model.named_buffers(remove_duplicate=False),
        ]
        for name, tensor in named:
            self._tensors[name] = tensor  # kept, lest another takes its place in memory
            self._places.setdefault(_storage(tensor), name)

    def load(self, weights: Sequence[tuple[str, Tensor]]) -> None:
        """Have the model load some tensors, and note what it does.

        Raises:
            ValueError: it knows no such tensor, or of another shape.
        """
        for name, tensor in weights:
            self._received[name] = fingerprint(tensor)
        with _Watch(self, weights) as watch:
            try:
                self._model.load_weights(watch.each())  # type: ignore[operator]
            except Exception as error:
                why = str(error).partition(" The available parameters")[0]
                raise ValueError(f"{watch.current[0]}: cannot be loaded: {why}") from error

    def copied(self, to: Tensor, source: Tensor, of: tuple[str, Tensor], *, exact: bool) -> None:
        """A loader copied something: ``exact`` where it is a part of the tensor as it arrived."""
        parameter = self._places.get(_storage(to))
        if parameter is None or not (exact or to.is_meta):
            return
        name, tensor = of
        self._known.add(name)
        self._filled[parameter][key(to)] = to.numel()
        note = Note(tensor=name, ordered=None, loose=0)
        if exact:
            note = self._note(parameter, name, tensor, source, to.dtype)
        self._notes[parameter][key(to)] = note

    def _note(
        self, parameter: str, name: str, tensor: Tensor, source: Tensor, dtype: torch.dtype
    ) -> Note:
        """By what arrived, and not by what is there now, where it is copied whole."""
        whole = source.dtype == dtype and key(source) == key(tensor)
        held = source.to(dtype)
        return Note(
            tensor=name,
            ordered=self._received[name] if whole else fingerprint(held),
            loose=unordered(held) if self._tensors[parameter].ndim == EXPERTS else 0,
        )

    def filled(self, to: Tensor) -> None:
        """A loader filled padding."""
        if (parameter := self._places.get(_storage(to))) is not None:
            self._filled[parameter][key(to)] = to.numel()

    def report(self) -> dict[str, Any]:
        """Once the update is over: what arrived, what of it lies nowhere, what lies wrong."""
        wrong: list[tuple[str, str]] = []
        transformed: list[tuple[str, str]] = []
        for parameter, notes in self._notes.items():
            for note, right in self._compared(parameter, notes):
                if right is not True:
                    (transformed if right is None else wrong).append((note.tensor, parameter))
        wrong += [("the tied weight", name) for name in self._stale_ties()]
        return {
            "received": self._received,
            "unknown": sorted(self._received.keys() - self._known),
            "missing": [name for name in self._wanted if self._left(name)],
            "wrong": wrong,
            "transformed": transformed,
        }

    def _left(self, parameter: str) -> bool:
        placed = self._tensors.get(parameter)
        return placed is None or sum(self._filled[parameter].values()) < placed.numel()

    def _compared(
        self, parameter: str, notes: dict[Key, Note]
    ) -> Iterator[tuple[Note, bool | None]]:
        """Whether each part is held; None where that cannot be said."""
        module, _, leaf = parameter.rpartition(".")
        owner = self._model.get_submodule(module)
        placed = self._tensors[parameter]
        if placed.ndim == EXPERTS:
            yield from _in_slabs(getattr(owner, leaf).detach(), placed, notes)
            return
        for held in readings(owner, leaf, placed.shape):
            if held is not None and placed.is_contiguous():
                yield from _in_place(held.contiguous(), notes)
            else:
                yield from ((note, None) for note in notes.values())

    def _stale_ties(self) -> Iterator[str]:
        """Modules that compute with something else than the parameter they share holds."""
        for name, module in self._model.named_modules():
            if not packed(module) or f"{name}.weight" in self._notes or not module.weight.numel():
                continue
            first, *others = readings(module, "weight", module.weight.shape)
            if first is None or any(fingerprint(first) != fingerprint(each) for each in others):
                yield f"{name}.weight"


class _Watch(TorchDispatchMode):
    """Sees the copies that are made while tensors are loaded."""

    def __init__(self, ledger: Ledger, weights: Sequence[tuple[str, Tensor]]) -> None:
        super().__init__()
        self.current = weights[0]
        self._ledger, self._weights = ledger, weights
        self._ranges: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for number, (_, tensor) in enumerate(weights):
            start = tensor.storage_offset() * tensor.element_size()
            self._ranges[_storage(tensor)].append((start, start + tensor.nbytes, number))
        for each in self._ranges.values():
            each.sort()

    def each(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors, one at a time."""
        for pair in self._weights:
            self.current = pair
            yield pair

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _aten.copy_.default:
            to, source = args[:2]
            of = self._part_of(source)
            self._ledger.copied(to, source, of or self.current, exact=of is not None)
        elif func in _FILLS:
            self._ledger.filled(args[0])
        return func(*args, **(kwargs or {}))

    def _part_of(self, source: Tensor) -> tuple[str, Tensor] | None:
        """The tensor that this is a part of, as it arrived."""
        ranges = self._ranges.get(_storage(source), [])
        at = source.storage_offset() * source.element_size()
        before = bisect_right(ranges, at, key=lambda each: each[0])
        if not before or at >= ranges[before - 1][1]:
            return None
        return self._weights[ranges[before - 1][2]]


def _in_place(held: Tensor, notes: dict[Key, Note]) -> Iterator[tuple[Note, bool | None]]:
    base = held.storage_offset()
    for (offset, size, stride), note in notes.items():
        part = held.as_strided(size, stride, base + offset)
        yield note, None if note.ordered is None else fingerprint(part) == note.ordered


def _in_slabs(
    held: Tensor, placed: Tensor, notes: dict[Key, Note]
) -> Iterator[tuple[Note, bool | None]]:
    """In their places, or else by the values of each expert: a kernel may have an order of its own,
    and zeros between."""
    plain = all(note.ordered is not None for note in notes.values()) and placed.is_contiguous()
    if not plain or len(held) != len(placed) or held.dtype != placed.dtype:
        yield from ((note, None) for note in notes.values())
        return
    if held.shape == placed.shape:
        compared = list(_in_place(held.contiguous(), notes))
        if all(right for _, right in compared):
            yield from compared
            return
    expert = placed[0].numel()
    asked = [0] * len(placed)
    for (offset, _, _), note in notes.items():
        asked[offset // expert] += note.loose
    right = [unordered(slab) == want % 2**64 for slab, want in zip(held, asked, strict=True)]
    for (offset, _, _), note in notes.items():
        yield note, right[offset // expert]


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
