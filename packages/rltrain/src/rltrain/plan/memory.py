# SPDX-License-Identifier: Apache-2.0
"""Bytes of a model on each GPU of an engine, read from its ``config.json``.

Contract: what a config leaves open is refused by the name of its key, as in
`rltrain.batch.modelcost`. Tensor parallel as vLLM has it: KV heads are divided until there is one a
GPU, a latent cache is whole on each, heads of linear layers are divided. Norms and biases are left
out. A sequence takes, of each layer, by its live length L: full attention L tokens, a window at
most so many, a linear layer its newest state, and others for a share of the blocks of L.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from rltrain.batch.modelcost import (
    Config,
    always_width,
    convolved_of,
    dense_at,
    expert_width,
    experts_of,
    head_of,
    kinds_of,
    linear_projections_of,
    need,
    projections_of,
    text_of,
)
from rltrain.plan.assumptions import MemoryAssumptions

WINDOWS: Final = {
    "sliding_attention": "sliding_window",
    "chunked_attention": "attention_chunk_size",
}
"""Kinds of layers that remember a bounded number of tokens, and what tells how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Bytes on one GPU of an engine."""

    weights: float
    token: float
    """KV of a token, of every layer with full attention."""
    windows: tuple[tuple[int, float], ...]
    """(tokens, bytes of each) of all layers with such a window together."""
    state: float
    """Of all linear layers, once."""
    block: int
    """Tokens whose KV in a full layer is as large as a state of a linear one: what vLLM makes a
    block of; 0 without linear layers."""
    states: float
    """Share of the blocks at whose end one is kept."""

    def sequence(self, live: float) -> float:
        """Of a sequence with so many live tokens."""
        kept = self.states * live / self.block if self.block else 0.0
        return self.looked_at(live) + self.state * kept

    def looked_at(self, live: float) -> float:
        """Of that, what its next token is made of."""
        bounded = sum(min(live, tokens) * each for tokens, each in self.windows)
        return live * self.token + bounded + self.state


def layout(config: Config, tp: int, told: MemoryAssumptions) -> Layout:
    """Of a model that so many GPUs share."""
    text = text_of(config)
    kinds = Counter(kinds_of(text))
    each = cached(text, tp) * told.kv_bytes
    state = _state(text, tp, told) if kinds["linear_attention"] else 0.0
    return Layout(
        weights=parameters(config) * told.weight_bytes / tp,
        token=kinds["full_attention"] * each,
        windows=tuple(
            (need(text, key), kinds[kind] * each) for kind, key in WINDOWS.items() if kinds[kind]
        ),
        state=kinds["linear_attention"] * state,
        block=round(state / each) if state else 0,
        states=told.states,
    )


def cached(config: Config, tp: int) -> int:
    """Elements that a layer keeps of a token, on one of the GPUs."""
    if config.get("kv_lora_rank"):
        return need(config, "kv_lora_rank") + need(config, "qk_rope_head_dim")
    heads = need(config, "num_key_value_heads" if _grouped(config) else "num_attention_heads")
    return 2 * max(1, heads // tp) * head_of(config)


def _grouped(config: Config) -> bool:
    return config.get("num_key_value_heads") is not None


def _state(config: Config, tp: int, told: MemoryAssumptions) -> float:
    """Of a linear layer: keys by values of each head, and what its convolution looks back at."""
    heads = need(config, "linear_num_value_heads") / tp
    key, value = need(config, "linear_key_head_dim"), need(config, "linear_value_head_dim")
    behind = need(config, "linear_conv_kernel_dim") - 1
    return heads * key * value * told.state_bytes + behind * convolved_of(config) / tp * (
        told.kv_bytes
    )


# --- weights --------------------------------------------------------------------------------------


def parameters(config: Config) -> int:
    """Of the language model, every expert counted, without norms and biases."""
    text = text_of(config)
    table = need(text, "hidden_size") * need(text, "vocab_size")
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))
    layers = [_mixer(text, kind) + _mlp(text, layer) for layer, kind in enumerate(kinds_of(text))]
    return table * (1 if tied else 2) + sum(layers)


def _mixer(config: Config, kind: str) -> int:
    linear = kind == "linear_attention"
    return linear_projections_of(config) if linear else projections_of(config)


def _mlp(config: Config, layer: int) -> int:
    hidden, experts = need(config, "hidden_size"), experts_of(config)
    if not experts or dense_at(config, layer):
        return 3 * hidden * need(config, "intermediate_size")
    width = expert_width(config)
    gate = 1 if config.get("shared_expert_intermediate_size") else 0
    return hidden * (experts + gate) + 3 * hidden * (experts * width + always_width(config, width))


def expert_parameters(config: Config) -> int:
    """Of those, how many are of experts that a token may pass by."""
    text = text_of(config)
    experts, layers = experts_of(text), need(text, "num_hidden_layers")
    sparse = sum(not dense_at(text, layer) for layer in range(layers)) if experts else 0
    if not sparse:
        return 0
    return sparse * 3 * need(text, "hidden_size") * experts * expert_width(text)
