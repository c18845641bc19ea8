# SPDX-License-Identifier: Apache-2.0
"""Trajectories that a small model really sampled, in a store that envkit wrote.

The model has a tokenizer of its own, trained on a few words; its tokens are drawn one by one from
its own distribution in float32, at the temperature asked for, and so are their log-probs. Every
trajectory has two turns with an observation between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from envkit.agent.tokens.vocabulary import Vocabulary
from envkit.trajectory.types import (
    EngineId,
    EngineRequest,
    Episode,
    Identity,
    Kind,
    Limits,
    Outcome,
    Sampling,
    Segment,
    Stop,
    Stream,
    Trajectory,
    Used,
)
from envkit.trajectory.writer import Writer

WORDS = (
    "the card in the north drawer names a depot and the depot names a key",
    "look up the number of the card, then answer with the key that it names",
    "nothing else is asked; the answer is one word",
)


def tokenizer(directory: Path) -> int:
    """Train one into a model directory; how many tokens it knows."""
    from rltrain.tiny.tokenizer import family_named, train_tokenizer, write_family

    family = family_named("qwen3")
    made = train_tokenizer([family], WORDS)
    write_family(directory, family, made)
    return made.get_vocab_size()


def policy(directory: Path, *, seed: int = 0, scale: float = 3.0, **more: Any) -> Path:
    """Two layers of Qwen3 with a tokenizer. Its output layer is multiplied, so that it has clear
    preferences, as a trained one has."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    vocabulary = tokenizer(directory)
    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 1024,
        "tie_word_embeddings": False,
        "dtype": "float32",
    }
    model = Qwen3ForCausalLM(Qwen3Config(**settings | more))
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(scale * 10)
    model.save_pretrained(directory)
    return directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is recorded."""

    groups: int = 8
    samples: int = 8
    prompt: int = 24
    said: int = 20
    """Tokens of each of the two turns."""
    temperature: float = 1.0
    seed: int = 0
    topk: int = 0


type Reward = Callable[[Stream], float]


def share_of_even(stream: Stream) -> float:
    """A reward that can be learned: which of its tokens have even ids."""
    return float((stream.token_ids[stream.loss_mask] % 2 == 0).mean())


def record(
    store: Path,
    model: Path,
    asked: Asked | None = None,
    reward: Reward = share_of_even,
    change: Callable[[Trajectory], Trajectory] = lambda row: row,
) -> list[Trajectory]:
    """Sample, and write; ``change`` may spoil each row before it is written."""
    asked = asked or Asked()
    rows = [change(each) for each in _sampled(model, asked, reward)]
    with Writer.open(store) as writer:
        for each in rows:
            writer.append(each)
    return rows


def _sampled(model: Path, asked: Asked, reward: Reward) -> list[Trajectory]:
    from transformers import AutoModelForCausalLM

    policy = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    draw = torch.Generator().manual_seed(asked.seed)
    digest = Vocabulary((model / "tokenizer.json").read_text("utf-8")).digest
    rows: list[Trajectory] = []
    for group in range(asked.groups):
        prompt = torch.randint(1, 200, (asked.prompt,), generator=draw)
        streams = _streams(policy, prompt, asked, draw)
        for number, stream in enumerate(streams):
            rows.append(_row(group, number, stream, reward(stream), digest, asked))
    return rows


@torch.no_grad()
def _streams(
    policy: Any, prompt: torch.Tensor, asked: Asked, draw: torch.Generator
) -> list[Stream]:
    """All samples of a prompt side by side."""
    observation = torch.randint(1, 200, (5,), generator=draw)
    ids = prompt.repeat(asked.samples, 1)
    logprobs = torch.full(ids.shape, float("nan"))
    tops: list[tuple[torch.Tensor, torch.Tensor]] = []
    for turn in range(2):
        for _ in range(asked.said):
            logits = policy(ids).logits[:, -1].float() / asked.temperature
            chances = logits.log_softmax(-1)
            next_ = torch.multinomial(chances.exp(), 1, generator=draw)
            ids = torch.cat([ids, next_], 1)
            logprobs = torch.cat([logprobs, chances.gather(1, next_)], 1)
            if asked.topk:
                tops.append(chances.topk(asked.topk))
        if turn == 0:
            ids = torch.cat([ids, observation.repeat(asked.samples, 1)], 1)
            nothing = torch.full((asked.samples, len(observation)), float("nan"))
            logprobs = torch.cat([logprobs, nothing], 1)
    return [_stream(ids[n], logprobs[n], tops, n, asked) for n in range(asked.samples)]


def _stream(
    ids: torch.Tensor,
    logprobs: torch.Tensor,
    tops: list[Any],
    number: int,
    asked: Asked,
) -> Stream:
    mask = ~logprobs.isnan().numpy()
    more: dict[str, Any] = {}
    if asked.topk:
        topk_ids = np.full((len(ids), asked.topk), -1, np.int32)
        topk = np.full((len(ids), asked.topk), np.nan, np.float32)
        topk_ids[mask] = torch.stack([each.indices[number] for each in tops]).int().numpy()
        topk[mask] = torch.stack([each.values[number] for each in tops]).numpy()
        more = {"topk_ids": topk_ids, "topk_logprobs": topk}
    return Stream(
        token_ids=ids.numpy().astype(np.int32),
        loss_mask=mask,
        logprobs=logprobs.numpy().astype(np.float32),
        weight_version=np.where(mask, 0, -1).astype(np.int32),
        segments=segments(asked),
        **more,
    )


def segments(asked: Asked) -> tuple[Segment, ...]:
    """Prompt, model, tool, model."""
    ends = [asked.prompt, asked.said, 5, asked.said]
    stops = np.cumsum(ends).tolist()
    starts = [0, *stops[:-1]]
    kinds = (Kind.PROMPT, Kind.MODEL, Kind.TOOL, Kind.MODEL)
    turns = (0, 0, 0, 1)
    return tuple(
        Segment(
            kind=kind,
            start=start,
            stop=stop,
            turn=turn,
            finish="stop" if kind is Kind.MODEL else None,
        )
        for kind, start, stop, turn in zip(kinds, starts, stops, turns, strict=True)
    )


def _row(
    group: int, number: int, stream: Stream, reward: float, digest: str, asked: Asked
) -> Trajectory:
    sampling = Sampling(temperature=asked.temperature, logprobs_mode="processed")
    if asked.temperature == 1.0:
        sampling = replace(sampling, logprobs_mode="raw")
    return Trajectory(
        identity=Identity(
            trajectory_id=f"task-{group}__{number:03}",
            group_id=f"task-{group}",
            sample=number,
            task=f"task-{group}",
            tokenizer_digest=digest,
            engine=EngineId(model="small", dtype="float32"),
            sampling=replace(sampling, top_logprobs=asked.topk),
        ),
        episode=Episode(
            stream=stream,
            stop=Stop.FINAL,
            limits=Limits(context_tokens=1024),
            used=Used(turns=2, sampled_tokens=int(stream.loss_mask.sum()), own_s=1.0),
            requests=tuple(
                EngineRequest(
                    turn=each.turn,
                    started_s=float(each.turn),
                    first_token_s=0.1,
                    seconds=0.5,
                    prompt_tokens=each.start,
                    sampled_tokens=each.stop - each.start,
                    finish="stop",
                )
                for each in stream.segments
                if each.kind is Kind.MODEL
            ),
            final_answer="done",
        ),
        outcome=Outcome(
            reward=reward, reward_valid=True, loss_live=True, verdict="graded", attempts=()
        ),
    )
