# SPDX-License-Identifier: Apache-2.0
"""What is trained, and how a step is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

type Dtype = Literal["float32", "bfloat16", "float64"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraConfig:
    """LoRA, arXiv 2106.09685, by peft."""

    rank: int = 16
    alpha: float = 32.0
    """What is added is ``alpha / rank`` of the product."""
    dropout: float = 0.0
    targets: tuple[str, ...] = ("all-linear",)
    """Names of linear layers; ``all-linear`` for every one but the output layer."""

    def __post_init__(self) -> None:
        if self.rank < 1 or not 0 <= self.dropout < 1 or not self.targets:
            raise ValueError("rank at least 1, dropout in [0, 1), targets not empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """A causal language model of Hugging Face's."""

    path: str
    """Its directory."""
    dtype: Dtype = "bfloat16"
    """Of the computation; weights and optimizer are float32 (float64 where that is asked for)."""
    attention: Literal["varlen", "sdpa", "eager", "flash_attention_2"] = "varlen"
    """``varlen``: one packed sample after the other; ``sdpa`` and ``eager`` take a matrix of all
    pairs of a micro-batch's tokens; ``flash_attention_2`` needs a GPU and its package."""
    logits: Literal["float32", "computed"] = "float32"
    """What the output layer multiplies in: float32, or what the computation is in as engines do."""
    checkpointing: bool = False
    """Make each layer's activations again in backward instead of keeping them."""
    reference: str = ""
    """Directory of the policy that ``objective.terms.kl`` keeps it near."""
    lora: LoraConfig | None = None
    """Train matrices of low rank beside the weights; None trains the weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """AdamW. The defaults are those of the published runs."""

    learning_rate: float = 1e-6
    """0 takes steps that change nothing: a control."""
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    clip: float = 1.0
    """Of the whole gradient's norm."""
    warmup_steps: int = 0
    """Steps over which the rate rises from nothing."""

    def __post_init__(self) -> None:
        if self.learning_rate < 0:
            raise ValueError(f"learning_rate: {self.learning_rate:g} is below 0")
        for name in ("clip", "epsilon"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}: {getattr(self, name):g} is not above 0")
        if not all(0 <= each < 1 for each in self.betas):
            raise ValueError(f"betas: {self.betas} are not in [0, 1)")
        if self.weight_decay < 0 or self.warmup_steps < 0:
            raise ValueError("weight_decay, warmup_steps: may not be below 0")
