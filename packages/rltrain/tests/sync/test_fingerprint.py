# SPDX-License-Identifier: Apache-2.0
"""One number of a tensor's values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rltrain.sync import fingerprint as module
from rltrain.sync.fingerprint import fingerprint, unordered

pytestmark = pytest.mark.trainer

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.uint8)


def some(dtype: torch.dtype = torch.float32) -> Tensor:
    drawn = torch.randn(40, 30, generator=torch.Generator().manual_seed(3))
    return drawn.to(dtype) if dtype.is_floating_point else (drawn * 50).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_value_and_any_two_that_change_places_change_it(dtype: torch.dtype) -> None:
    plain = some(dtype)
    for other in (plain.flip(0), plain.roll(1, 1), plain.T.reshape(40, 30)):
        assert fingerprint(other.contiguous()) != fingerprint(plain)
    for place in range(0, plain.numel(), 97):
        changed = plain.clone()
        changed.view(-1)[place] += 1
        assert fingerprint(changed) != fingerprint(plain)
        assert unordered(changed) != unordered(plain)


def test_the_smallest_change_of_one_value_changes_it() -> None:
    plain = some()
    changed = plain.clone()
    changed[7, 7] = torch.nextafter(changed[7, 7], torch.tensor(9.0))
    assert fingerprint(changed) != fingerprint(plain)


def test_a_part_has_its_own_wherever_it_lies() -> None:
    plain = some()
    part = plain[3:9, 4:11]
    assert fingerprint(part) == fingerprint(part.clone()) != fingerprint(plain)


def test_neither_the_sign_of_zero_nor_what_is_flushed_to_it_changes_it() -> None:
    plain = torch.tensor([0.0, 0.0, 1.0])
    assert fingerprint(torch.tensor([-0.0, 1e-40, 1.0])) == fingerprint(plain)
    assert fingerprint(torch.tensor([1e-37, 0.0, 1.0])) != fingerprint(plain)


def test_what_is_no_number_is_not_taken_for_zero() -> None:
    plain = torch.tensor([0.0, 1.0])
    for odd in (float("nan"), float("inf")):
        assert fingerprint(torch.tensor([odd, 1.0])) != fingerprint(plain)


def test_zeros_at_the_end_change_it_and_nothing_has_one_too() -> None:
    assert fingerprint(torch.zeros(3)) != fingerprint(torch.zeros(4))
    assert fingerprint(torch.zeros(0)) != fingerprint(torch.zeros(1))


def test_it_does_not_depend_on_how_many_values_are_taken_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, loose = fingerprint(some()), unordered(some())
    monkeypatch.setattr(module, "CHUNK", 7)
    assert (fingerprint(some()), unordered(some())) == (whole, loose)


def test_in_no_order_places_and_padding_do_not_count_and_parts_add_up() -> None:
    plain = some()
    padded = torch.cat([plain.view(-1).flip(0), torch.zeros(50)])
    assert unordered(padded) == unordered(plain)
    assert (unordered(plain[:11]) + unordered(plain[11:])) % 2**64 == unordered(plain)
