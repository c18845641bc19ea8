# SPDX-License-Identifier: Apache-2.0
"""What a token and a pair of tokens cost a model, read from its ``config.json``.

Units are FLOPs of a forward pass, a multiplication and an addition each counting one. A backward
pass does about twice as many of both kinds, so packing, which heeds only a/b, needs no other.

``a``, by token: twice the parameters that it passes, output layer included; the embedding is looked
up and costs nothing. Layers that remember a bounded number of tokens, or a state, are in it too.
``b``, by pair: scores and values of full attention, 2 · heads · head_dim · L² a layer for a sample
of L tokens. That is the causal half, which is what kernels for training do; one that masks a whole
square does twice that, and its a/b is half of this one. For layers of 12 hidden_size² parameters,
with heads that are together as wide as the model, a/b is 12 hidden_size: 24,576 for those of
Qwen3-1.7B without its output layer.

Contract: norms, rotations, biases, softmax and activations are left out, MLPs are gated (three
matrices), and the layers of multi-token prediction are not run. A window of W tokens costs W pairs
for each token, which is too much for samples shorter than W. A linear-attention layer is a gated
delta rule in chunks, as training runs it. What a config leaves open, or has and is not counted
here, is refused by the name of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rltrain.batch.cost import Cost
from rltrain.refused import Refused

CHUNK: Final = 64
"""Tokens of a chunk of the gated delta rule: in flash-linear-attention and in transformers."""
EXPERTS: Final = ("num_experts", "num_local_experts", "n_routed_experts")
"""What families call the number of experts of a layer."""
TWO_WIDTHS: Final = ("n_routed_experts", "decoder_sparse_step", "shared_expert_intermediate_size")
"""Where one of these is, ``intermediate_size`` is of dense layers and not of experts."""
OWN_HEADS: Final = (
    "gemma",
    "gemma2",
    "gemma3_text",
    "qwen3",
    "qwen3_5_moe_text",
    "qwen3_5_text",
    "qwen3_next",
)
"""Families whose heads are not, unless told, ``hidden_size / num_attention_heads`` wide."""
GATED: Final = ("qwen3_5", "qwen3_next")
"""Families whose full attention has an output gate, whether their config says so or not."""
ALL_SLIDE: Final = ("mistral", "mixtral", "phi3")
"""Families of which every layer has the window, if there is one."""
PATTERNS: Final = {"gemma2": 2, "gemma3_text": 6}
"""Every how many layers one is full, in families that may leave it unsaid."""
UNCOUNTED: Final = (
    "altup_num_inputs",
    "attn_layer_period",
    "global_head_dim",
    "hc_count",
    "hc_mult",
    "hybrid_override_pattern",
    "index_topk",
    "indexer_n_heads",
    "intermediate_size_mlp",
    "linear_attn_config",
    "mamba_d_state",
    "moe_layer_freq",
    "moe_num_experts",
    "moe_shared_expert_intermediate_size",
    "num_shared_experts",
    "ssm_state_size",
)
"""Keys that change what a token costs, in ways not counted here."""

type Config = Mapping[str, Any]


def cost_of(config: Config) -> Cost:
    """Forward FLOPs of a sample, by token and by pair of tokens.

    Raises:
        Refused: the config leaves something open, or has something that is not counted.
    """
    text = text_of(config)
    output = 2 * need(text, "hidden_size") * need(text, "vocab_size")
    mixers = [MIXERS[kind](text) for kind in kinds_of(text)]
    mlps = [2 * _mlp(text, layer) for layer in range(len(mixers))]
    return Cost(
        a=float(output + sum(mlps) + sum(each.a for each in mixers)),
        b=float(sum(each.b for each in mixers)),
    )


def text_of(config: Config) -> Config:
    """The part that is a language model."""
    text: Config = config.get("text_config") or config
    for key in UNCOUNTED:
        if text.get(key) and (key, text[key]) != ("moe_layer_freq", 1):
            raise Refused(f"config.json: {key} is {text[key]!r}, whose cost is not known here")
    return text


def need(config: Config, key: str) -> int:
    """A whole number of 1 or more.

    Raises:
        Refused: there is none.
    """
    value = config.get(key)
    if value is None:
        raise Refused(f"config.json: {key} is missing; a token's cost depends on it: add it")
    if not isinstance(value, int) or value < 1:
        raise Refused(f"config.json: {key} is {value!r}; give a whole number of 1 or more")
    return value


def _family(config: Config) -> str:
    return str(config.get("model_type") or "")


# --- which layers there are -----------------------------------------------------------------------


def kinds_of(config: Config) -> Sequence[str]:
    """What mixes the tokens of each layer."""
    count = need(config, "num_hidden_layers")
    kinds: Sequence[str] = config.get("layer_types") or _implied(config, count)
    if len(kinds) != count:
        raise Refused(f"config.json: layer_types has {len(kinds)}, num_hidden_layers is {count}")
    for kind in kinds:
        if kind not in MIXERS:
            known = ", ".join(sorted(MIXERS))
            raise Refused(f"config.json: layer_types has {kind!r}; known here are {known}")
    return kinds


def _implied(config: Config, count: int) -> Sequence[str]:
    if config.get("full_attention_interval"):
        return _every(need(config, "full_attention_interval"), "linear_attention", count)
    if config.get("linear_num_value_heads") or config.get("attention_chunk_size"):
        need(config, "layer_types")
    if not config.get("sliding_window") or config.get("use_sliding_window") is False:
        return ["full_attention"] * count
    return _sliding_kinds(config, count)


def _sliding_kinds(config: Config, count: int) -> Sequence[str]:
    family = _family(config)
    if family in ALL_SLIDE:
        return ["sliding_attention"] * count
    if family in ("qwen2", "qwen3"):
        full = min(count, need(config, "max_window_layers"))
        return ["full_attention"] * full + ["sliding_attention"] * (count - full)
    interval = config.get("sliding_window_pattern") or PATTERNS.get(family)
    return _every(interval or need(config, "layer_types"), "sliding_attention", count)


def _every(interval: int, other: str, count: int) -> Sequence[str]:
    """The last of so many layers is full."""
    return [other if (layer + 1) % interval else "full_attention" for layer in range(count)]


# --- what mixes tokens ----------------------------------------------------------------------------


def _full(config: Config) -> Cost:
    return Cost(a=2 * projections_of(config), b=_pair(config))


def _sliding(config: Config) -> Cost:
    """Every token sees a window, all of it, where one of full attention sees half on average."""
    window = need(config, "sliding_window")
    return Cost(a=2 * projections_of(config) + 2 * _pair(config) * window, b=0)


def _chunked(config: Config) -> Cost:
    """Every token sees what is before it in its chunk, half of one on average."""
    chunk = need(config, "attention_chunk_size")
    return Cost(a=2 * projections_of(config) + _pair(config) * chunk, b=0)


def _linear(config: Config) -> Cost:
    """A gated delta rule."""
    heads = need(config, "linear_num_value_heads")
    key, value = need(config, "linear_key_head_dim"), need(config, "linear_value_head_dim")
    return Cost(a=2 * linear_projections_of(config) + heads * _state(key, value), b=0)


def linear_projections_of(config: Config) -> int:
    """Parameters of queries, keys, values, gate, two scalars a head, output and convolution."""
    hidden, heads = need(config, "hidden_size"), need(config, "linear_num_value_heads")
    values = heads * need(config, "linear_value_head_dim")
    convolved = convolved_of(config)
    projections = hidden * (convolved + values + 2 * heads) + values * hidden
    return projections + convolved * need(config, "linear_conv_kernel_dim")


def convolved_of(config: Config) -> int:
    """Width of queries, keys and values of a linear-attention layer together."""
    keys = need(config, "linear_num_key_heads") * need(config, "linear_key_head_dim")
    return 2 * keys + need(config, "linear_num_value_heads") * need(config, "linear_value_head_dim")


def _state(key: int, value: int) -> int:
    """Of a head, by token: the state read twice and written once; squares of a chunk, of which two
    are of keys and one of values; and two triangular systems, solved for values and for keys.
    """
    return 6 * key * value + CHUNK * (4 * key + 2 * value) + CHUNK * (key + value)


MIXERS: Final[Mapping[str, Callable[[Config], Cost]]] = {
    "full_attention": _full,
    "sliding_attention": _sliding,
    "chunked_attention": _chunked,
    "linear_attention": _linear,
}


def _pair(config: Config) -> int:
    """Of a pair by the causal half: a product of keys and one of values, 2 FLOPs each, halved."""
    heads = need(config, "num_attention_heads")
    if config.get("kv_lora_rank"):
        return heads * (_latent_key(config) + need(config, "v_head_dim"))
    return 2 * heads * head_of(config)


def projections_of(config: Config) -> int:
    """Parameters of queries, keys, values and output."""
    if config.get("kv_lora_rank"):
        return _latent(config)
    hidden, heads = need(config, "hidden_size"), need(config, "num_attention_heads")
    shared = config.get("num_key_value_heads") or heads
    gated = config.get("attn_output_gate", _family(config).startswith(GATED))
    return hidden * head_of(config) * (heads * (3 if gated else 2) + 2 * shared)


def head_of(config: Config) -> int:
    """Width of a head of attention."""
    hidden, heads = need(config, "hidden_size"), need(config, "num_attention_heads")
    told = config.get("head_dim") is not None
    if told or hidden % heads or _family(config) in OWN_HEADS:
        return need(config, "head_dim")
    return hidden // heads


def _latent(config: Config) -> int:
    """Keys and values by way of a narrow one that all heads share; queries too, where told."""
    hidden, heads = need(config, "hidden_size"), need(config, "num_attention_heads")
    rank, value = need(config, "kv_lora_rank"), need(config, "v_head_dim")
    key, rotated = _latent_key(config), need(config, "qk_rope_head_dim")
    narrow = config.get("q_lora_rank")
    queries = narrow * (hidden + heads * key) if narrow else hidden * heads * key
    rest = hidden * (rank + rotated) + rank * heads * (key - rotated + value)
    return queries + rest + heads * value * hidden


def _latent_key(config: Config) -> int:
    return need(config, "qk_nope_head_dim") + need(config, "qk_rope_head_dim")


# --- what each token passes alone -----------------------------------------------------------------


def _mlp(config: Config, layer: int) -> int:
    """Parameters of a dense layer, or of a router, the experts it takes and those all take."""
    hidden = need(config, "hidden_size")
    experts = experts_of(config)
    if not experts or dense_at(config, layer):
        return 3 * hidden * need(config, "intermediate_size")
    width = expert_width(config)
    taken = need(config, "num_experts_per_tok") * width + always_width(config, width)
    gate = 1 if config.get("shared_expert_intermediate_size") else 0
    return hidden * (experts + gate) + 3 * hidden * taken


def experts_of(config: Config) -> int:
    """Of a layer that has some; 0 for a dense model."""
    return next((config[name] for name in EXPERTS if config.get(name)), 0)


def dense_at(config: Config, layer: int) -> bool:
    """Whether a layer of a model with experts has none."""
    if config.get("mlp_layer_types"):
        return config["mlp_layer_types"][layer] == "dense"
    return (
        layer in (config.get("mlp_only_layers") or ())
        or layer < (config.get("first_k_dense_replace") or 0)
        or (layer + 1) % (config.get("decoder_sparse_step") or 1) != 0
    )


def expert_width(config: Config) -> int:
    """Of an expert."""
    told = any(config.get(name) is not None for name in ("moe_intermediate_size", *TWO_WIDTHS))
    return need(config, "moe_intermediate_size" if told else "intermediate_size")


def always_width(config: Config, width: int) -> int:
    """Width of the experts that every token passes."""
    shared = config.get("shared_expert_intermediate_size") or 0
    return shared + width * (config.get("n_shared_experts") or 0)
