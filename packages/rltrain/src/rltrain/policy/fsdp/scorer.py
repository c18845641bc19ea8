# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""A causal language model as what scores the trained tokens of a micro-batch.

It is one module, so that one call of it brings all that is sharded together: decoder and output
layer. Only the states that score a trained token meet the output layer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rltrain.batch.micro import MicroBatch
from rltrain.policy.fsdp.attention import VARLEN
from rltrain.policy.fused import fused


class Passed(NamedTuple):
    """What a forward pass tells of the trained tokens: ``[M]`` each, in nats."""

    logp: Tensor
    entropy: Tensor
    topk: Tensor | None
    """``[M, k]``: log-probs of the alternatives, where the micro-batch has some."""


class Scorer(nn.Module):
    """Of a model of transformers with a decoder and an output layer."""

    def __init__(self, model: Any, *, wide: bool = False) -> None:
        """``wide``: the output layer multiplies in float32, whatever the decoder computes in."""
        super().__init__()
        self.model = model
        self._wide = wide

    def forward(self, batch: MicroBatch) -> Passed:
        """With gradients, but for the alternatives'."""
        hidden = self.model.get_decoder()(
            input_ids=batch.ids[None],
            position_ids=batch.positions[None],
            use_cache=False,
            **self._more(batch),
        ).last_hidden_state[0]
        states, weight = hidden[batch.states], self.model.get_output_embeddings().weight
        if self._wide and states.dtype != torch.float64:
            states, weight = states.float(), weight.float()
        logp, entropy = fused(states, weight, batch.targets, temperature=batch.temperature)
        return Passed(logp, entropy, _alternatives(states, weight, batch, logp))

    def _more(self, batch: MicroBatch) -> dict[str, Any]:
        """What an attention of ours is told of samples."""
        own = self.model.config._attn_implementation == VARLEN
        return {"lengths": batch.lengths} if own else {}

    @property
    def layers(self) -> list[nn.Module]:
        """The decoder's, each of which is sharded by itself."""
        return list(self.model.get_decoder().layers)


@torch.no_grad()
def _alternatives(states: Tensor, weight: Tensor, batch: MicroBatch, logp: Tensor) -> Tensor | None:
    """By how their logits differ from the sampled token's, whose log-prob is known."""
    if batch.topk_ids is None:
        return None
    listed = batch.topk_ids.long().clamp(min=0)
    logits = torch.einsum("mh,mkh->mk", states, weight[listed]).to(logp.dtype)
    sampled = (states * weight[batch.targets]).sum(-1, keepdim=True).to(logp.dtype)
    return logp[:, None] + (logits - sampled) / batch.temperature


def total(values: Tensor, weight: Tensor) -> Tensor:
    """The weighted sum, in the values' own precision."""
    return (values * weight.to(values.dtype)).sum()
