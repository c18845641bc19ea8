# SPDX-License-Identifier: Apache-2.0
"""Many tensors as few messages."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor

from rltrain.sync.buckets import Item, buckets, unpacked

pytestmark = pytest.mark.trainer


def tensors() -> list[tuple[str, Tensor]]:
    """Of sizes that are no multiples of anything, in types of all widths."""
    return [
        ("a", torch.arange(3, dtype=torch.uint8)),
        ("b", torch.randn(5, 7)),
        ("c", torch.randn(3, 1).bfloat16()),
        ("d", torch.randn(2, 2, 2).double()),
        ("e", torch.tensor(4.0)),
        ("f", torch.randn(6, 4).T),
        ("g", torch.zeros(0, 3)),
    ]


@pytest.mark.parametrize("most", [1, 60, 200, 10_000])
def test_what_is_unpacked_is_what_was_packed(most: int) -> None:
    plain = tensors()
    found: list[tuple[str, Tensor]] = []
    for bucket in buckets(plain, most):
        items = [Item.of(json.loads(json.dumps(each.plain()))) for each in bucket.items]
        buffer = bucket.packed("cpu")
        assert len(buffer) == bucket.bytes
        found += unpacked(buffer, items)
    assert [name for name, _ in found] == [name for name, _ in plain]
    for (_, ours), (_, theirs) in zip(found, plain, strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


def test_a_bucket_takes_no_more_than_it_may_but_for_one_tensor_alone() -> None:
    made = list(buckets(tensors(), 200))
    assert len(made) > 1
    assert all(each.bytes <= 200 or len(each.items) == 1 for each in made)


def test_nothing_makes_no_bucket() -> None:
    assert list(buckets([], 100)) == []
