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
from torch.distributed.checkpoint import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)

from rltrain.batch.micro import MicroBatch
from rltrain.objective.report import Seen
from rltrain.objective.terms import kl_to
from rltrain.objective.types import Alternatives, Tokens
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.leak import Leaks, expect_apart
from rltrain.policy.fsdp.load import USED, mesh, sharded
from rltrain.policy.fsdp.scorer import total
from rltrain.policy.fsdp.whole import weights_of, whole
from rltrain.policy.fused import Scored
from rltrain.policy.types import Goal, Stepped
from rltrain.refused import Refused

_TRAINED = StateDictOptions(ignore_frozen_params=True, strict=False)
"""What is not trained is in the checkpoint that the policy was loaded from."""


class FsdpBackend:
    """A policy on the ranks of the default process group, which is there already."""

    def __init__(self, policy: PolicyConfig, optimizer: OptimizerConfig) -> None:
        """Load a checkpoint and shard it.

        Raises:
            Refused: there is no such checkpoint, or packed samples see each other in its model.
        """
        self._mesh = mesh()
        self._optimizer_config = optimizer
        self._scorer = sharded(policy, self._mesh)
        vocabulary = self._scorer.model.config.get_text_config().vocab_size
        try:
            expect_apart(self._scorer, vocabulary, USED[policy.dtype])
        except Leaks as error:
            raise Refused(f"policy.path: {policy.path}: cannot be packed: {error}") from error
        self._scorer.reshard()  # as in `score`
        self._trained = [each for each in self._scorer.parameters() if each.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._trained,
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
        norm = torch.nn.utils.clip_grad_norm_(self._trained, self._optimizer_config.clip)
        rate = self._rate()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self.forget()
        self._steps += 1
        return Stepped(
            loss=loss,
            gradient_norm=float(whole(norm)),
            learning_rate=rate,
            seen=self._gathered(seen),
        )

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
                yield name, whole(parameter.grad)

    def forget(self) -> None:
        """Take no step by the gradient there is."""
        self._optimizer.zero_grad()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Whole tensors by the checkpoint's names."""
        yield from weights_of(self._scorer.model)

    def save(self, directory: Path) -> None:
        """Leave everything that another step depends on, each rank its part.

        Raises:
            Refused: it cannot be written.
        """
        try:
            dcp.save(self._state(), checkpoint_id=directory)
        except CheckpointException as error:
            raise Refused(f"{directory}: cannot be written: {_first(error)}; make room") from error

    def restore(self, directory: Path) -> None:
        """Be what `save` left, on as many ranks or on others.

        Raises:
            Refused: it is no such directory, or not of this model.
        """
        state = self._state()
        try:
            dcp.load(state, checkpoint_id=directory)
        except CheckpointException as error:
            raise Refused(f"{directory}: is not of this policy: {_first(error)}") from error
        set_state_dict(
            self._scorer,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
            options=_TRAINED,
        )
        self._steps = state["steps"]

    def _state(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self._scorer, self._optimizer, options=_TRAINED)
        return {"model": model, "optimizer": optimizer, "steps": self._steps}

    def _gathered(self, seen: Seen) -> Seen:
        """Of all ranks on rank 0; elsewhere one's own."""
        if self.ranks == 1:
            return seen
        parts: list[Any] | None = [None] * self.ranks if self.rank == 0 else None
        dist.gather_object(seen, parts, group=self._mesh.get_group(), dst=0)
        return Seen.together(parts) if parts is not None else seen

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
        return cost, Seen.of(tokens, judged, entropy, batch.version, batch.swaps)

    def _rate(self) -> float:
        """Of the step that is about to be taken."""
        config = self._optimizer_config
        risen = (self._steps + 1) / config.warmup_steps if config.warmup_steps else 1.0
        return config.learning_rate * min(1.0, risen)


def _first(error: CheckpointException) -> str:
    """What the first of the ranks that failed has to say."""
    return str(next(iter(error.failures.values()))[0]).partition("\n")[0]


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
