# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
# torch and transformers are not in the environment that is type-checked.
"""A small Qwen3 model from its configuration, and supervised steps on examples.

Examples of one tool set begin with the same thousands of ids, on which no loss is taken: they pass
the model once a step without a gradient, and every example of the batch continues from their keys
and values. That is a quarter of the work, and what is learned is the same.

Contract: one thread and float32, so that the same examples and seed give the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import Qwen3Config, Qwen3ForCausalLM

from envkit.agent.tokens import ChatTemplate
from rltrain.tiny.examples import Example

LEARNING_RATE = 5e-3
"""Of a model this narrow; at 3e-3 it takes half as many steps again."""
SPREAD = 0.02
"""Deviation of the weights at the beginning, as Qwen3 has it."""
COPYING_RATE = 3e-3
COPYING_SPREAD = 0.06
"""For a policy that is to copy what it reads: from narrower weights that takes several times as
many steps."""
WARM_UP_STEPS = 10
CONTEXT_TOKENS = 16_384
"""Positions it is made for; it has been trained on the first few thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How it is trained."""

    steps: int
    seed: int
    last: int
    """How many of the last steps the loss is the mean of."""
    copies: bool = False
    """It is to learn what to say from what it reads, and not the form alone."""

    @property
    def spread(self) -> float:
        """Of the first weights."""
        return COPYING_SPREAD if self.copies else SPREAD

    def rate(self, step: int) -> float:
        """Of the step of this number, from 0."""
        highest = COPYING_RATE if self.copies else LEARNING_RATE
        return highest * min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.02, 1 - step / self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What came of it."""

    parameters: int
    loss: float
    """Nats a transcript."""


def train(
    directory: Path,
    batches: Iterator[Sequence[Example]],
    template: ChatTemplate,
    schedule: Schedule,
    told: Callable[[int, float], None],
) -> Trained:
    """Train a new model and leave weights and configuration beside what the directory has.

    ``told`` hears of every step and its loss, in nats a transcript.
    """
    model = _new_model(template, schedule)
    losses = _losses(model, batches, schedule, told)
    stops = (directory / "generation_config.json").read_bytes()
    model.save_pretrained(directory)
    (directory / "generation_config.json").write_bytes(stops)
    last = losses[-schedule.last :]
    numbers = sum(each.numel() for each in model.parameters())
    return Trained(parameters=numbers, loss=sum(last) / len(last))


def _new_model(template: ChatTemplate, schedule: Schedule) -> Qwen3ForCausalLM:
    """About 0.9 million parameters, a sixth of them embeddings."""
    torch.set_num_threads(1)
    torch.manual_seed(schedule.seed)
    config = Qwen3Config(
        vocab_size=template.vocabulary_size,
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        initializer_range=schedule.spread,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=list(template.stop_ids),
        dtype="float32",
    )
    return Qwen3ForCausalLM(config)


def _losses(
    model: Qwen3ForCausalLM,
    batches: Iterator[Sequence[Example]],
    schedule: Schedule,
    told: Callable[[int, float], None],
) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
    losses: list[float] = []
    for step in range(schedule.steps):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        optimizer.zero_grad()
        loss = _loss(model, next(batches))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        told(step + 1, losses[-1])
    return losses


def _loss(model: Qwen3ForCausalLM, batch: Sequence[Example]) -> torch.Tensor:
    """Nats a transcript over what the model says."""
    shared = _shared(batch)
    with torch.no_grad():
        prefix = model.model(torch.tensor([batch[0].ids[:shared]]), use_cache=True)
    cache = prefix.past_key_values
    cache.batch_repeat_interleave(len(batch))
    ids, targets = _padded(batch, shared)
    hidden = model.model(ids, past_key_values=cache, use_cache=True).last_hidden_state[:, :-1]
    said = targets[:, 1:] >= 0
    logits = model.lm_head(hidden[said])
    return cross_entropy(logits, targets[:, 1:][said], reduction="sum") / len(batch)


def _shared(batch: Sequence[Example]) -> int:
    """How many ids all of them begin with, up to one before what the model first says."""
    columns = zip(*(each.ids for each in batch), strict=False)
    same = sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))
    return min(same, *(each.said.index(True) - 1 for each in batch))


def _padded(batch: Sequence[Example], start: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids from ``start`` on, and the same where the model says them, -1 elsewhere."""
    longest = max(len(each.ids) for each in batch) - start
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    targets = torch.full((len(batch), longest), -1)
    for row, each in enumerate(batch):
        rest = torch.tensor(each.ids[start:])
        ids[row, : len(rest)] = rest
        targets[row, : len(rest)] = torch.where(torch.tensor(each.said[start:]), rest, -1)
    return ids, targets
