# SPDX-License-Identifier: Apache-2.0
"""Losses agree with the reference, value and gradient, and keep to the mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from rltrain.objective.loss import LOSSES, PpoDualClip
from rltrain.objective.loss.clipped import Tis
from rltrain.objective.loss.dppo import Dppo, DppoTopk
from rltrain.objective.report import Seen
from rltrain.objective.terms import TermsConfig, kl_to
from rltrain.objective.types import Tokens

from . import reference
from .batches import DrawnTokens, tokens_of

pytestmark = pytest.mark.trainer

SETTINGS: dict[str, list[dict[str, float]]] = {
    "dppo": [{}, {"delta_low": 0.15, "delta_high": 0.15}, {"cap": 1.5}],
    "dppo_kl": [{}, {"delta": 0.01, "cap": 2.0}],
    "dppo_topk": [{}, {"delta_low": 0.3, "delta_high": 0.1}],
    "glm5": [{}, {"eps_low": 0.2, "eps_high": 0.3}],
    "ppo": [{}, {"eps_low": 0.1, "eps_high": 0.4}],
    "ppo_dual_clip": [{}, {"dual": 1.5}],
    "cispo": [{}, {"eps_low": 1.0, "eps_high": 0.1}],
    "gspo": [{}, {"eps_low": 0.2, "eps_high": 0.3}],
    "tis": [{}, {"cap": 1.1}],
    "reinforce": [{}],
}
CASES = [(name, setting) for name, each in SETTINGS.items() for setting in each]


def test_every_loss_is_compared() -> None:
    assert SETTINGS.keys() == LOSSES.keys()


def expected(name: str, drawn: DrawnTokens, setting: dict[str, float]) -> reference.Loss:
    more: dict[str, Any] = {}
    if name == "tis":
        more = {"old": drawn.old}
    if name == "dppo_topk":
        more = {
            "ids": drawn.ids,
            "topk_ids": drawn.topk_ids,
            "topk_rollout": drawn.topk_rollout,
            "topk_policy": drawn.topk_policy,
        }
    of = getattr(reference, name)
    return of(
        drawn.logp, drawn.rollout, drawn.advantage, drawn.mask, drawn.sample, **more, **setting
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_loss_agrees_in_float64(name: str, setting: dict[str, float], seed: int) -> None:
    drawn = tokens_of(seed)
    tokens, logp = drawn.tokens(torch.float64)
    judged = LOSSES[name](**setting)(tokens)
    (gradient,) = torch.autograd.grad(judged.value.sum(), logp)
    wanted = expected(name, drawn, setting)
    np.testing.assert_allclose(judged.value.detach().numpy(), wanted.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient.numpy(), wanted.gradient, rtol=1e-12, atol=1e-12)
    assert judged.masked.tolist() == wanted.masked.tolist()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_loss_agrees_in_float32(name: str, setting: dict[str, float], seed: int) -> None:
    """Inputs are what float32 makes of them; tokens at a threshold to rounding are left out."""
    drawn = narrowed(tokens_of(seed))
    tokens, logp = drawn.tokens(torch.float32)
    judged = LOSSES[name](**setting)(tokens)
    (gradient,) = torch.autograd.grad(judged.value.sum(), logp)
    wanted = expected(name, drawn, setting)
    assert judged.value.dtype == torch.float32
    same = judged.masked.numpy() == wanted.masked
    assert same.mean() > 0.98
    for found, right in ((judged.value.detach(), wanted.value), (gradient, wanted.gradient)):
        np.testing.assert_allclose(found.numpy()[same], right[same], rtol=1e-5, atol=1e-7)


def narrowed(drawn: DrawnTokens) -> DrawnTokens:
    def narrow(values: Any) -> Any:
        return values.astype(np.float32).astype(np.float64) if values.dtype == float else values

    return DrawnTokens(**{name: narrow(each) for name, each in vars(drawn).items()})


@pytest.mark.parametrize("name", LOSSES)
def test_what_is_not_trained_on_reaches_no_value_and_no_gradient(name: str) -> None:
    drawn = tokens_of(3)
    tokens, logp = drawn.tokens(torch.float64)
    judged = LOSSES[name]()(tokens)
    (gradient,) = torch.autograd.grad(judged.value.sum(), logp)
    outside = ~torch.tensor(drawn.mask)
    assert not judged.value[outside].any()
    assert not gradient[outside].any()
    assert not judged.masked[outside].any()
    assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize("name", LOSSES)
def test_an_empty_micro_batch_costs_nothing(name: str) -> None:
    drawn = DrawnTokens(**{n: each[:0] for n, each in vars(tokens_of(0)).items()})
    tokens, _ = drawn.tokens(torch.float32)
    assert float(LOSSES[name]()(tokens).value.detach().sum()) == 0.0


def one(policy: float, rollout: float, advantage: float) -> tuple[Tokens, torch.Tensor]:
    logp = torch.tensor([math.log(policy)], dtype=torch.float64, requires_grad=True)
    return Tokens(
        logp=logp,
        rollout=torch.tensor([math.log(rollout)], dtype=torch.float64),
        advantage=torch.tensor([advantage], dtype=torch.float64),
        mask=torch.tensor([True]),
        sample=torch.tensor([0]),
    ), logp


@pytest.mark.parametrize(
    ("policy", "rollout", "advantage", "masked"),
    [
        (0.76, 0.5, 1.0, True),  # likelier and to be likelier still
        (0.76, 0.5, -1.0, False),  # on its way back
        (0.24, 0.5, -1.0, True),
        (0.24, 0.5, 1.0, False),
        (0.74, 0.5, 1.0, False),
        (0.26, 0.5, -1.0, False),
    ],
)
def test_dppo_masks_what_leads_further_away(
    policy: float, rollout: float, advantage: float, masked: bool
) -> None:
    tokens, logp = one(policy, rollout, advantage)
    judged = Dppo(delta_low=0.25, delta_high=0.25)(tokens)
    (gradient,) = torch.autograd.grad(judged.value.sum(), logp)
    assert judged.masked.tolist() == [masked]
    assert float(gradient) == pytest.approx(0.0 if masked else -advantage * policy / rollout)


def test_a_rare_token_is_capped_and_not_masked() -> None:
    """A ratio of 100 at one in a thousand is a variation of 0.099."""
    tokens, logp = one(0.1, 0.001, 1.0)
    judged = Dppo()(tokens)
    assert judged.masked.tolist() == [False]
    (gradient,) = torch.autograd.grad(judged.value.sum(), logp)
    assert float(gradient) == -10.0


def test_the_likeliest_tokens_have_a_divergence_in_float32() -> None:
    tokens, _ = one(0.99999999, 0.9, 1.0)
    narrow = Tokens(
        logp=tokens.logp.float(),
        rollout=tokens.rollout.float(),
        advantage=tokens.advantage.float(),
        mask=tokens.mask,
        sample=tokens.sample,
    )
    assert LOSSES["dppo_kl"]()(narrow).masked.tolist() == [True]


def test_what_a_loss_needs_and_has_not_is_named() -> None:
    tokens, _ = one(0.5, 0.5, 1.0)
    with pytest.raises(ValueError, match="dppo_topk needs alternatives"):
        DppoTopk()(tokens)
    with pytest.raises(ValueError, match="tis needs the log-probs before"):
        Tis()(tokens)
    with pytest.raises(ValueError, match="dual: 1 is not above 1"):
        PpoDualClip(dual=1.0)


# --- terms and reports ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_kl_to_a_reference_agrees_and_is_never_negative(seed: int) -> None:
    drawn = tokens_of(seed)
    tokens, logp = drawn.tokens(torch.float64)
    found = kl_to(tokens.rollout, logp, tokens.mask)
    (gradient,) = torch.autograd.grad(found.sum(), logp)
    wanted = reference.kl_term(drawn.logp[drawn.mask], drawn.rollout[drawn.mask])
    there = torch.tensor(drawn.mask)
    np.testing.assert_allclose(found.detach()[there].numpy(), wanted.value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradient[there].numpy(), wanted.gradient, rtol=1e-12, atol=1e-12)
    assert float(found.detach().min()) >= 0.0
    assert not gradient[~there].any()


def test_terms_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="entropy: -1 is below 0"):
        TermsConfig(entropy=-1.0)


@pytest.mark.parametrize("name", LOSSES)
def test_a_report_agrees_whole_and_in_parts(name: str) -> None:
    drawn = tokens_of(5, count=200)
    tokens, _ = drawn.tokens(torch.float64)
    judged = LOSSES[name]()(tokens)
    figures = Seen.of(tokens, judged).figures()
    live = [True] * 5
    wanted = reference.report(
        drawn.logp,
        drawn.rollout,
        drawn.advantage,
        drawn.mask,
        drawn.sample,
        live,
        judged.masked.tolist(),
    )
    for field in wanted.__dataclass_fields__:
        assert figures[field] == pytest.approx(getattr(wanted, field), rel=1e-9, nan_ok=True), field
    parts = [Seen.of(*piece(tokens, judged, start)) for start in range(0, 200, 50)]
    together = Seen.together(parts).figures()
    for field, value in together.items():
        assert value == pytest.approx(figures[field], rel=1e-12, nan_ok=True), field


def piece(tokens: Tokens, judged: Any, start: int) -> tuple[Tokens, Any]:
    here = slice(start, start + 50)
    names = ("logp", "rollout", "advantage", "mask", "sample")
    part = Tokens(**{name: getattr(tokens, name)[here] for name in names})
    return part, type(judged)(value=judged.value[here], masked=judged.masked[here])


def test_a_report_of_nothing_is_not_a_number() -> None:
    drawn = DrawnTokens(**{n: each[:0] for n, each in vars(tokens_of(0)).items()})
    tokens, _ = drawn.tokens(torch.float32)
    figures = Seen.of(tokens, Dppo()(tokens)).figures()
    assert all(math.isnan(each) for each in figures.values())


def test_a_report_compares_log_probs_of_the_tokens_that_these_weights_sampled() -> None:
    """What training has moved since is no difference between engine and trainer."""
    drawn = tokens_of(7, count=60)
    tokens, _ = drawn.tokens(torch.float64)
    version = torch.arange(60) % 3 - 1
    seen = Seen.of(tokens, Dppo()(tokens), None, version)
    fresh = tokens.mask & (version == 1)
    off = (tokens.logp - tokens.rollout).detach()[fresh].clamp(-20, 20).abs()
    figures = seen.figures(1)
    assert figures["difference"] == pytest.approx(float(off.mean()), rel=1e-12)
    assert figures["difference_max"] == pytest.approx(float(off.max()), rel=1e-12)
    assert figures["difference_tokens"] == len(off)
    assert seen.figures()["difference_tokens"] == int(tokens.mask.sum())
    assert math.isnan(seen.figures(9)["difference"])
    assert seen.figures(9)["tv"] == seen.figures()["tv"]


def test_a_report_tells_tokens_after_a_swap_apart_and_older_ones_by_age() -> None:
    """Keys and values of older weights are no difference between engine and trainer either."""
    drawn = tokens_of(8, count=80)
    tokens, _ = drawn.tokens(torch.float64)
    version, swaps = torch.arange(80) % 8 - 1, torch.arange(80) % 3
    seen = Seen.of(tokens, Dppo()(tokens), None, version, swaps)
    figures = seen.figures(6)
    off = (tokens.logp - tokens.rollout).detach().clamp(-20, 20).abs()

    def mean(where: torch.Tensor) -> float:
        return float(off[tokens.mask & where].mean())

    assert figures["difference"] == pytest.approx(mean((version == 6) & (swaps == 0)))
    assert figures["swapped"] == pytest.approx(mean((version == 6) & (swaps > 0)))
    assert figures["swapped_tokens"] == int((tokens.mask & (version == 6) & (swaps > 0)).sum())
    assert figures["difference_age_1"] == pytest.approx(mean(version == 5))
    assert figures["difference_age_3"] == pytest.approx(mean((version <= 3) & (version >= 0)))
