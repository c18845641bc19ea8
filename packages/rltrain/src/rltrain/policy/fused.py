# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Log-probs and entropies of tokens, out of hidden states, without ever all their logits.

Logits of 8,192 tokens over 152,000 are 5 GB in float32, and autograd keeps several such. Here they
come chunk by chunk and go again; backward makes each chunk anew, which is one product more.

Contract: the values and the gradients are those of `plain`. Logits are made float32 (or float64
where the states are) before anything is exponentiated, and are divided by the temperature that the
tokens were sampled at. Shapes: T tokens, H hidden, V vocabulary.

Source of the idea: Wijmans et al., Cut Your Losses, arXiv 2411.09009.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

CHUNK_LOGITS: Final = 2**26
"""Logits that are there at once: 256 MB in float32."""


class Scored(NamedTuple):
    """``[T]`` each, in nats."""

    logp: Tensor
    """Of the tokens that were sampled."""
    entropy: Tensor
    """Of all that might have been."""


def fused(
    hidden: Tensor, weight: Tensor, ids: Tensor, *, temperature: float = 1.0, chunk: int = 0
) -> Scored:
    """Score the tokens ``ids [T]`` by the states ``hidden [T, H]`` before them.

    ``weight [V, H]`` is the model's output layer; ``chunk`` is how many tokens are taken at once, 0
    for as many as have `CHUNK_LOGITS`.
    """
    rows = chunk or max(1, CHUNK_LOGITS // len(weight))
    return Scored(*_Fused.apply(hidden, weight, ids, temperature, rows))


def plain(hidden: Tensor, weight: Tensor, ids: Tensor, *, temperature: float = 1.0) -> Scored:
    """The same in four lines and much memory."""
    logits = _wide(hidden) @ _wide(weight).T / temperature
    logps = logits.log_softmax(-1)
    chosen = logps.gather(-1, ids[:, None]).squeeze(-1)
    return Scored(chosen, -(logps.exp() * logps).sum(-1))


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _logits(hidden: Tensor, weight: Tensor, temperature: float) -> Tensor:
    """Of a chunk, wide; the product itself is of the states' own type, as an engine's is."""
    return _wide(hidden @ weight.T).div_(temperature)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, ids: Tensor, temperature: float, rows: int
    ) -> tuple[Tensor, Tensor]:
        wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        logp = torch.empty(len(hidden), dtype=wide, device=hidden.device)
        entropy, lse = torch.empty_like(logp), torch.empty_like(logp)
        for start in range(0, len(hidden), rows):
            here = slice(start, start + rows)
            logits = _logits(hidden[here], weight, temperature)
            lse[here] = logits.logsumexp(-1)
            logps = logits.sub_(lse[here, None])
            logp[here] = logps.gather(-1, ids[here, None]).squeeze(-1)
            entropy[here] = -logps.exp().mul_(logps).sum(-1)
        ctx.save_for_backward(hidden, weight, ids, lse, entropy)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.set_materialize_grads(False)
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, ids, lse, entropy = ctx.saved_tensors
        to_logp, to_entropy = grads
        to_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        to_weight = torch.zeros_like(weight, dtype=lse.dtype) if ctx.needs_input_grad[1] else None
        for start in range(0, len(hidden), ctx.rows):
            here = slice(start, start + ctx.rows)
            to_logits = _to_logits(
                _logits(hidden[here], weight, ctx.temperature).sub_(lse[here, None]),
                ids[here],
                None if to_logp is None else to_logp[here],
                None if to_entropy is None else to_entropy[here],
                entropy[here],
            ).div_(ctx.temperature)
            narrow = to_logits.to(hidden.dtype)
            if to_hidden is not None:
                to_hidden[here] = narrow @ weight
            if to_weight is not None:
                to_weight += narrow.T @ hidden[here]
        given = None if to_weight is None else to_weight.to(weight.dtype)
        return to_hidden, given, None, None, None


def _to_logits(
    logps: Tensor, ids: Tensor, to_logp: Tensor | None, to_entropy: Tensor | None, entropy: Tensor
) -> Tensor:
    """Gradient with respect to the logits of a chunk; ``logps`` is overwritten.

    d logp / dz_j = [j is the token] - p_j; dH / dz_j = -p_j (log p_j + H).
    """
    chances = logps.exp()
    if to_entropy is None:
        factor = torch.zeros_like(logps)
    else:
        factor = logps.add_(entropy[:, None]).mul_(-to_entropy[:, None])
    if to_logp is not None:
        factor.sub_(to_logp[:, None])
    result = factor.mul_(chances)
    if to_logp is not None:
        result.scatter_add_(-1, ids[:, None], to_logp[:, None].to(result.dtype))
    return result
