# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Attention that goes from one packed sample to the next, by torch's own kernels.

A mask that keeps samples apart is a matrix of all pairs of tokens of a micro-batch: for samples of
2,267 tokens in micro-batches of 16,384, seven times the work, and a gigabyte. Here each sample is a
causal attention by itself, which no mask is needed for, whatever else it is packed with.

Contract: registered with transformers under `VARLEN`; the decoder is called with ``lengths``, the
tokens of each sample. A model that hides them from its attention, or wants what is not done here
(capped scores, sinks, biases), is refused when it is first called.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

from rltrain.refused import Refused

VARLEN: Final = "varlen"
NOT_DONE: Final = ("softcap", "s_aux", "position_bias", "cache")
"""What models hand to attention beside queries, keys and values."""


class NotVarlen(Refused):
    """This model's attention cannot be done one sample after the other."""


def varlen(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    lengths: tuple[int, ...] | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """``[1, heads, T, d]`` to ``[1, T, heads, d]``, as transformers' own attentions do.

    Raises:
        NotVarlen: the lengths did not come this far, or something is asked that is not done here.
    """
    unknown = [name for name in NOT_DONE if more.get(name) is not None]
    if lengths is None or attention_mask is not None or unknown:
        why = f"it uses {unknown[0]}" if unknown else "it hides where samples end"
        raise NotVarlen(f"policy.attention: varlen does not fit this model, {why}; take sdpa")
    if shared := query.shape[1] // key.shape[1] - 1:
        key, value = (each.repeat_interleave(shared + 1, dim=1) for each in (key, value))
    parts = [
        scaled_dot_product_attention(
            *each,
            attn_mask=(mask := _window(each[0].shape[2], sliding_window, query.device)),
            dropout_p=dropout,
            is_causal=mask is None,
            scale=scaling,
        )
        for each in zip(*(each.split(lengths, dim=2) for each in (query, key, value)), strict=True)
    ]
    return torch.cat(parts, dim=2).transpose(1, 2).contiguous(), None


def _window(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """Which pairs see each other, where that is not all of the causal ones."""
    if window is None or length <= window:
        return None
    places = torch.arange(length, device=device)
    apart = places[:, None] - places
    return (apart >= 0) & (apart < window)


def _no_mask(*_: Any, **__: Any) -> None:
    """Nothing has to be kept apart that is never put together."""


AttentionInterface.register(VARLEN, varlen)
AttentionMaskInterface.register(VARLEN, _no_mask)
