# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Samples and tokens as flat tensors.

Shapes: N samples of a batch, T tokens of a micro-batch, k alternatives a token.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Samples:
    """What a batch is made of, before any split. Tensors are ``[N]``."""

    rewards: Tensor
    """Floating; whatever it is where the sample is not valid, it does not matter."""
    valid: Tensor
    """Bool: it has a reward, and the reward is the model's own. Decides every baseline."""
    live: Tensor
    """Bool: it is trained on. Decides every denominator; what is live is valid."""
    group: Tensor
    """Int64: which prompt it answers."""
    tokens: Tensor
    """Int64: how many of its tokens the model sampled, T_i."""

    def __post_init__(self) -> None:
        if bool((self.live & ~self.valid).any()):
            raise ValueError("a sample is live and not valid")

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Alternatives:
    """The best tokens of the rollout at each place, as both policies see them. ``[T, k]``."""

    ids: Tensor
    """-1 where there are fewer."""
    rollout: Tensor
    policy: Tensor
    """Log-probs."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tokens:
    """Tokens of a micro-batch, one sample after the other. Tensors are ``[T]``.

    What stands at tokens that are not trained on (NaN, for one) reaches no value and no gradient.
    """

    logp: Tensor
    """Log-probs by the trainer, with their gradient."""
    rollout: Tensor
    """Log-probs as the engine recorded them."""
    advantage: Tensor
    """Of the token's sample."""
    mask: Tensor
    """Bool: sampled by the model, in a live sample."""
    sample: Tensor
    """Int64 from 0: which sample of the micro-batch the token is of."""
    ids: Tensor | None = None
    """Where a loss compares them with alternatives."""
    old: Tensor | None = None
    """Log-probs by the trainer before its update, for `Tis`."""
    alternatives: Alternatives | None = None
    """For `DppoTopk`."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Judged:
    """What the tokens cost. Tensors are ``[T]``."""

    value: Tensor
    """Zero where the mask is not set; weights are not in it yet."""
    masked: Tensor
    """Bool: the loss takes no step on this token, or a clipped one."""
