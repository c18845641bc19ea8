# SPDX-License-Identifier: Apache-2.0
"""Fused scores are the plain ones, value and gradient, however they are cut."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.policy.fused import fused, plain

pytestmark = pytest.mark.trainer

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def drawn(seed: int, tokens: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    make = torch.Generator().manual_seed(seed)
    hidden = torch.randn(tokens, 16, generator=make, dtype=torch.float64).to(dtype)
    weight = torch.randn(301, 16, generator=make, dtype=torch.float64).to(dtype)
    ids = torch.randint(0, 301, (tokens,), generator=make)
    return hidden.requires_grad_(), weight.requires_grad_(), ids


def both(loss_of: object, seed: int, tokens: int, dtype: torch.dtype, chunk: int) -> None:
    hidden, weight, ids = drawn(seed, tokens, dtype)
    found: list[tuple[torch.Tensor, ...]] = []
    for score in (
        plain(hidden, weight, ids, temperature=0.7),
        fused(hidden, weight, ids, temperature=0.7, chunk=chunk),
    ):
        loss = loss_of(score)  # type: ignore[operator]
        gradients = torch.autograd.grad(loss, (hidden, weight))
        found.append((score.logp.detach(), score.entropy.detach(), *gradients))
    for right, ours in zip(*found, strict=True):
        near = TOLERANCE[dtype] * max(1.0, float(right.abs().max()))
        assert float((ours - right).abs().max()) <= near


@pytest.mark.parametrize("dtype", TOLERANCE)
@given(seed=st.integers(0, 2**20), tokens=st.integers(1, 40), chunk=st.integers(1, 50))
@settings(deadline=None, max_examples=30)
def test_values_and_gradients_are_those_of_the_plain_one(
    dtype: torch.dtype, seed: int, tokens: int, chunk: int
) -> None:
    weights = torch.linspace(-1, 1, tokens, dtype=dtype)

    def loss(score: object) -> torch.Tensor:
        return (score.logp * weights - 0.3 * score.entropy * weights.flip(0)).sum()  # type: ignore[attr-defined]

    both(loss, seed, tokens, dtype, chunk)


@pytest.mark.parametrize("name", ["logp", "entropy"])
def test_one_of_them_alone_has_its_own_gradient(name: str) -> None:
    both(lambda score: getattr(score, name).sum(), 5, 20, torch.float64, 6)


def test_the_gradient_is_that_of_the_finite_differences() -> None:
    hidden, weight, ids = drawn(1, 4, torch.float64)

    def scores(hidden: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(fused(hidden, weight, ids, temperature=1.3, chunk=3))

    assert torch.autograd.gradcheck(scores, (hidden, weight))


def test_a_frozen_output_layer_gets_no_gradient() -> None:
    hidden, weight, ids = drawn(2, 5, torch.float32)
    score = fused(hidden, weight.detach(), ids)
    score.logp.sum().backward()
    assert hidden.grad is not None
    assert weight.grad is None


def test_scores_of_bfloat16_states_are_float32() -> None:
    hidden, weight, ids = drawn(3, 50, torch.float32)
    exact = plain(hidden, weight, ids)
    score = fused(hidden.bfloat16(), weight.bfloat16(), ids, chunk=7)
    assert (score.logp.dtype, score.entropy.dtype) == (torch.float32, torch.float32)
    assert float((score.logp - exact.logp).detach().abs().mean()) < 0.05
    score.logp.sum().backward()
    assert hidden.grad is not None
