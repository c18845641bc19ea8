# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""From a checkpoint of Hugging Face's to a scorer that is sharded over the ranks.

Weights are kept in float32 and computed with in what the policy says; every rank reads the whole
checkpoint into its memory once. Where LoRA is asked for, only its matrices are trained, and they
begin the same on every rank.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from rltrain.policy.config import LoraConfig, PolicyConfig
from rltrain.policy.fsdp.scorer import Scorer
from rltrain.refused import Refused

KEPT: Final = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.float32}
"""What weights and optimizer are in."""
USED: Final = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}
"""What is computed in."""


def mesh() -> DeviceMesh:
    """All ranks of the default process group."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    return init_device_mesh(kind, (dist.get_world_size(),))


def sharded(policy: PolicyConfig, over: DeviceMesh) -> Scorer:
    """The policy, each rank with its part of every tensor.

    Raises:
        Refused: there is no such checkpoint, or it is none of a causal language model.
    """
    model = _read(policy)
    model.train()
    if policy.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if policy.lora is not None:
        model = _with_lora(model, policy.lora)
    scorer = Scorer(model.to(over.device_type), wide=policy.logits == "float32")
    kept, used = KEPT[policy.dtype], USED[policy.dtype]
    mixed = MixedPrecisionPolicy(param_dtype=used, reduce_dtype=kept)
    for layer in scorer.layers:
        fully_shard(layer, mesh=over, mp_policy=mixed)
    fully_shard(scorer, mesh=over, mp_policy=mixed, reshard_after_forward=False)
    return scorer


def _read(policy: PolicyConfig) -> Any:
    if not (Path(policy.path) / "config.json").is_file():
        raise Refused(f"policy.path: {policy.path or 'nothing'}: no config.json there")
    disable_progress_bar()
    try:
        return AutoModelForCausalLM.from_pretrained(
            policy.path, dtype=KEPT[policy.dtype], attn_implementation=policy.attention
        )
    except (OSError, ValueError, ImportError) as error:
        line = str(error).strip().partition("\n")[0]
        raise Refused(f"policy.path: {policy.path}: cannot be loaded: {line}") from error


def _with_lora(model: Any, lora: LoraConfig) -> Any:
    try:
        import peft
    except ModuleNotFoundError as error:
        raise Refused("policy.lora: peft is not installed; pip install 'rltrain[torch]'") from error
    targets = "all-linear" if lora.targets == ("all-linear",) else list(lora.targets)
    config = peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=targets
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            return peft.inject_adapter_in_model(config, model)
        except ValueError as error:
            raise Refused(f"policy.lora.targets: {str(error).partition('. ')[0]}") from error
