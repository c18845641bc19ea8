# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from rltrain.buffer.config import BufferConfig


def test_the_ceiling_is_of_a_batch_more_than_the_bound() -> None:
    assert BufferConfig(staleness=3).ceiling(16, 16) == 1024


@pytest.mark.parametrize("name", ["staleness", "head_start", "retries", "refills", "bound_wait_s"])
def test_what_is_below_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: -1 is below 0"):
        BufferConfig(**{name: -1})


def test_an_order_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="order: there is no 'fifo'; there are deadline, compl"):
        BufferConfig(order="fifo")  # pyright: ignore[reportArgumentType]
