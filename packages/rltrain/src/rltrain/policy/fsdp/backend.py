# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The torch backend: one model over all ranks by FSDP2, also where there is one rank, on the CPU.

Contract: the gradient is that of the sum over all ranks' micro-batches, however they were cut:
FSDP averages over ranks, so each rank's part is multiplied by their number first. Weights and
optimizer are float32 whatever the computation is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM

from rltrain.batch.micro import MicroBatch
from rltrain.objective.report import Seen
from rltrain.objective.terms import kl_to
from rltrain.objective.types import Alternatives, Tokens
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.leak import expect_apart
from rltrain.policy.fsdp.scorer import Scorer, total
from rltrain.policy.fused import Scored
from rltrain.policy.types import Goal, Stepped

_KEPT = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.float32}
_USED = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


class FsdpBackend:
    """A policy on the ranks of the default process group, which is there already."""

    def __init__(self, policy: PolicyConfig, optimizer: OptimizerConfig) -> None:
        """Load a checkpoint and shard it.

        Raises:
            OSError: there is no such checkpoint.
            Leaks: packed samples see each other in this model.
        """
        self._mesh = _mesh()
        self._optimizer_config = optimizer
        self._scorer = _sharded(policy, self._mesh)
        vocabulary = self._scorer.model.config.get_text_config().vocab_size
        expect_apart(self._scorer, vocabulary, _USED[policy.dtype])
        self._scorer.reshard()  # as in `score`
        self._optimizer = torch.optim.AdamW(
            self._scorer.parameters(),
            lr=optimizer.learning_rate,
            betas=optimizer.betas,
            eps=optimizer.epsilon,
            weight_decay=optimizer.weight_decay,
        )
        self._steps = 0

    @property
    def ranks(self) -> int:
        return self._mesh.size()

    @property
    def rank(self) -> int:
        return self._mesh.get_rank()

    def score(self, batch: MicroBatch) -> Scored:
        """Log-probs and entropies of the trained tokens, ``[M]`` each."""
        with torch.no_grad():
            logp, entropy, _ = self._scorer(batch.to(self._mesh.device_type))
        self._scorer.reshard()  # as backward does: what is whole is no parameter of the optimizer's
        return Scored(logp, entropy)

    def step(self, batches: Sequence[MicroBatch], goal: Goal) -> Stepped:
        """One update."""
        loss, seen = self.gradients(batches, goal)
        norm = torch.nn.utils.clip_grad_norm_(
            self._scorer.parameters(), self._optimizer_config.clip
        )
        rate = self._rate()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self.forget()
        self._steps += 1
        whole = norm.full_tensor() if isinstance(norm, DTensor) else norm
        return Stepped(loss=loss, gradient_norm=float(whole), learning_rate=rate, seen=seen)

    def gradients(self, batches: Sequence[MicroBatch], goal: Goal) -> tuple[float, Seen]:
        """Add the gradient of the ranks' micro-batches to the parameters'; the whole loss."""
        parts: list[Seen] = []
        loss = torch.zeros((), dtype=torch.float64)
        for batch in batches:
            cost, seen = self._cost(batch.to(self._mesh.device_type), goal)
            (cost * self.ranks).backward()
            loss += cost.detach().double().cpu()
            parts.append(seen)
        dist.all_reduce(loss, group=self._mesh.get_group())
        return float(loss), Seen.together(parts)

    def gradient(self) -> Iterator[tuple[str, Tensor]]:
        """Whole gradients by name."""
        for name, parameter in self._scorer.named_parameters():
            if parameter.grad is not None:
                yield name, _whole(parameter.grad)

    def forget(self) -> None:
        """Take no step by the gradient there is."""
        self._optimizer.zero_grad()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Whole tensors by the checkpoint's names."""
        for name, parameter in self._scorer.model.named_parameters():
            yield name, _whole(parameter.detach())

    def save(self, directory: Path) -> None:
        """Leave everything that another step depends on, each rank its part."""
        model, optimizer = get_state_dict(self._scorer, self._optimizer)
        state = {"model": model, "optimizer": optimizer, "steps": self._steps}
        dcp.save(state, checkpoint_id=directory)

    def restore(self, directory: Path) -> None:
        """Be what `save` left, on as many ranks or on others.

        Raises:
            CheckpointException: it is no such directory, or not of this model.
        """
        model, optimizer = get_state_dict(self._scorer, self._optimizer)
        state = {"model": model, "optimizer": optimizer, "steps": 0}
        dcp.load(state, checkpoint_id=directory)
        set_state_dict(
            self._scorer,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        self._steps = state["steps"]

    def _cost(self, batch: MicroBatch, goal: Goal) -> tuple[Tensor, Seen]:
        logp, entropy, topk = self._scorer(batch)
        tokens = tokens_of(batch, logp, topk)
        judged, terms = goal.loss(tokens), goal.terms
        cost = total(judged.value, batch.weight)
        if terms.entropy:
            cost = cost - terms.entropy * total(entropy, batch.weight)
        if terms.kl:
            if batch.reference is None:
                raise ValueError("kl: the micro-batch has no log-probs of a reference")
            cost = cost + terms.kl * total(kl_to(batch.reference, logp, tokens.mask), batch.weight)
        return cost, Seen.of(tokens, judged, entropy)

    def _rate(self) -> float:
        """Of the step that is about to be taken."""
        config = self._optimizer_config
        risen = (self._steps + 1) / config.warmup_steps if config.warmup_steps else 1.0
        return config.learning_rate * min(1.0, risen)


def tokens_of(batch: MicroBatch, logp: Tensor, topk: Tensor | None) -> Tokens:
    """A micro-batch's trained tokens as a loss takes them."""
    alternatives = None
    if topk is not None and batch.topk_ids is not None and batch.topk_rollout is not None:
        alternatives = Alternatives(ids=batch.topk_ids, rollout=batch.topk_rollout, policy=topk)
    return Tokens(
        logp=logp,
        rollout=batch.rollout,
        advantage=batch.advantage,
        mask=torch.ones_like(logp, dtype=torch.bool),
        sample=batch.sample,
        ids=batch.targets,
        old=batch.old,
        alternatives=alternatives,
    )


def _mesh() -> DeviceMesh:
    kind = "cuda" if dist.get_backend() == "nccl" else "cpu"
    return init_device_mesh(kind, (dist.get_world_size(),))


def _sharded(policy: PolicyConfig, mesh: DeviceMesh) -> Any:
    model = AutoModelForCausalLM.from_pretrained(
        policy.path, dtype=_KEPT[policy.dtype], attn_implementation=policy.attention
    )
    model.train()
    if policy.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    scorer = Scorer(model.to(mesh.device_type))
    mixed = MixedPrecisionPolicy(param_dtype=_USED[policy.dtype], reduce_dtype=_KEPT[policy.dtype])
    for layer in scorer.layers:
        fully_shard(layer, mesh=mesh, mp_policy=mixed)
    fully_shard(scorer, mesh=mesh, mp_policy=mixed, reshard_after_forward=False)
    return scorer


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
