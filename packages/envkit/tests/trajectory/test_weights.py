# SPDX-License-Identifier: Apache-2.0
"""A digest of weights is of the tensors, however they lie in files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from envkit.fault import HarnessError
from envkit.trajectory.weights import weights_digest

from .tensors import index, write

ONE = np.arange(6, dtype=np.float32).reshape(2, 3)
OTHER = np.arange(4, dtype=np.float32)
TENSORS = {"a.weight": ONE, "b.weight": OTHER}


def test_it_is_the_sha256_of_names_types_shapes_and_contents(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", TENSORS)
    rows = [
        [name, "F32", list(each.shape), hashlib.sha256(each.tobytes()).hexdigest()]
        for name, each in TENSORS.items()
    ]
    expected = hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()
    assert weights_digest(tmp_path) == expected


def test_files_order_and_metadata_do_not_matter(tmp_path: Path) -> None:
    whole, split, turned = tmp_path / "whole", tmp_path / "split", tmp_path / "turned"
    write(whole / "model.safetensors", TENSORS)
    write(turned / "weights.safetensors", dict(reversed(TENSORS.items())), format="pt")
    for number, name in enumerate(TENSORS):
        write(split / f"model-{number}.safetensors", {name: TENSORS[name]})
    assert weights_digest(whole) == weights_digest(split) == weights_digest(turned)


def test_files_that_the_index_does_not_name_are_left(tmp_path: Path) -> None:
    write(tmp_path / "model-1.safetensors", TENSORS)
    before = weights_digest(tmp_path)
    index(tmp_path, dict.fromkeys(TENSORS, "model-1.safetensors"))
    write(tmp_path / "consolidated.safetensors", TENSORS)
    assert weights_digest(tmp_path) == before


@pytest.mark.parametrize(
    "other",
    [
        {"a.weight": ONE + np.float32(1e-6), "b.weight": OTHER},
        {"a.weight": ONE.T.copy(), "b.weight": OTHER},
        {"a.weight": ONE.view(np.int32), "b.weight": OTHER},
        {"a.weight": ONE, "c.weight": OTHER},
        {"a.weight": ONE},
    ],
    ids=["value", "shape", "type", "name", "number"],
)
def test_a_change_of_any_tensor_changes_it(tmp_path: Path, other: dict[str, np.ndarray]) -> None:
    write(tmp_path / "one/model.safetensors", TENSORS)
    write(tmp_path / "other/model.safetensors", other)
    assert weights_digest(tmp_path / "one") != weights_digest(tmp_path / "other")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def no_header(file: Path) -> None:
    file.write_bytes(b"weights of a model, in no format at all")


def torn_header(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[8] = ord("[")
    file.write_bytes(data)


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def overlapping(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"[24, 40]", b"[20, 40]"))


def twice(file: Path) -> None:
    write(file.with_name("z.safetensors"), {"a.weight": ONE})


def gone(file: Path) -> None:
    file.unlink()


def not_all(file: Path) -> None:
    index(file.parent, {"a.weight": file.name, "b.weight": "model-2.safetensors"})


def strange_index(file: Path) -> None:
    file.with_name("model.safetensors.index.json").write_text("[]")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (cut, r"model\.safetensors: is cut off; name the directory"),
        (no_header, r"model\.safetensors: is no safetensors file, or cut off"),
        (torn_header, r"model\.safetensors: is no safetensors file: its header cannot be read"),
        (longer, r"model\.safetensors: has bytes that are no tensor's"),
        (overlapping, r"is damaged: its header cannot be right about b\.weight"),
        (twice, r"z\.safetensors: holds a\.weight, which another file has too"),
        (gone, r"holds no \*\.safetensors"),
        (not_all, r"model-2\.safetensors: is missing, and model\.safetensors\.index\.json names"),
        (strange_index, r"index\.json: is no index of weights"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_damaged_and_missing_files_are_one_line(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    file = write(tmp_path / "model.safetensors", TENSORS)
    spoil(file)
    with pytest.raises(HarnessError, match=said) as refused:
        weights_digest(tmp_path)
    assert "\n" not in str(refused.value)


def test_it_says_how_much_has_been_read(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.safetensors", {name: TENSORS[name]}) for name in TENSORS]
    told: list[tuple[int, int]] = []
    weights_digest(tmp_path, lambda done, of: told.append((done, of)))
    whole = sum(file.stat().st_size for file in files)
    assert told == [(files[0].stat().st_size, whole), (whole, whole)]
