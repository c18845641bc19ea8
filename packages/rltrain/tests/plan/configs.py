# SPDX-License-Identifier: Apache-2.0
"""Published figures of architectures, and small runs of made-up speeds."""

from __future__ import annotations

from typing import Any

from rltrain.batch.config import BatchConfig
from rltrain.buffer.config import BufferConfig
from rltrain.cluster.config import ClusterConfig
from rltrain.plan.assumptions import Assumptions
from rltrain.plan.model import config_of
from rltrain.plan.plan import Asked, Tables
from rltrain.rollout.config import RolloutConfig

LLAMA_3_8B: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
QWEN3_8B: dict[str, Any] = {
    "model_type": "qwen3",
    "vocab_size": 151_936,
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_window_layers": 36,
    "use_sliding_window": False,
}
QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "vocab_size": 151_936,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "max_window_layers": 48,
}
DEEPSEEK_V2_LITE: dict[str, Any] = {
    "model_type": "deepseek_v2",
    "vocab_size": 102_400,
    "hidden_size": 2048,
    "intermediate_size": 10_944,
    "moe_intermediate_size": 1408,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
GEMMA_3_4B: dict[str, Any] = {
    "model_type": "gemma3_text",
    "vocab_size": 262_208,
    "hidden_size": 2560,
    "intermediate_size": 10_240,
    "num_hidden_layers": 34,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
    "tie_word_embeddings": True,
}
QWEN36_35B = config_of("qwen3.6-35b-a3b")
QWEN35_397B = config_of("qwen3.5-397b-a17b")


def tables(**changed: Any) -> Tables:
    """A small cluster: 4 prompts of 4 samples, 24 at once, a context of 16,000."""
    given: dict[str, Any] = {
        "batch": BatchConfig(prompts=4, samples=4, micro_batch_tokens=16_000),
        "buffer": BufferConfig(staleness=3),
        "rollout": RolloutConfig(concurrency=24, context_tokens=16_000),
        "cluster": ClusterConfig(inference_nodes=2, training_nodes=1, engines=2, engine_tp=8),
    }
    return Tables(**given | changed)


def asked(
    *, config: dict[str, Any] = QWEN3_8B, told: Assumptions | None = None, **changed: Any
) -> Asked:
    """A plan of it, for few steps."""
    given: dict[str, Any] = {"tables": tables(), "fixed": frozenset[str](), "steps": 12}
    return Asked(name="small", config=config, told=told or Assumptions(), **given | changed)
