# SPDX-License-Identifier: Apache-2.0
"""Trajectories that the real loop makes with a real template, without boxes: for showing them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from envkit.agent.limits import Account
from envkit.agent.loaded import voice
from envkit.agent.loop import Loop
from envkit.agent.parse.format import say
from envkit.agent.prompt import opening
from envkit.agent.tokens import ChatTemplate
from envkit.agent.types import CallRequest, EncodedPrompt, Sampled
from envkit.trajectory.types import (
    EngineId,
    FaultNote,
    Identity,
    Limits,
    Outcome,
    Sampling,
    Stop,
    Trajectory,
)
from envkit.trajectory.writer import Writer

from ..agent.small import Belt
from ..agent.tokens.models import make_model

SAID_BEFORE = "I look at what is there."


@dataclass
class Clock:
    """Stands still until somebody moves it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class SpokenEngine:
    """Says texts, in the tokens that a model would say them in."""

    template: ChatTemplate
    turns: Sequence[str]
    clock: Clock
    version: int = 3
    asked: int = 0
    context_tokens: int = 100_000
    identity: EngineId = field(
        default_factory=lambda: EngineId(model="tiny", server="vllm 0.32.0", dtype="float32")
    )

    async def sample(
        self,
        prompt: EncodedPrompt,
        *,
        max_tokens: int,
        stop_ids: Sequence[int],
        sampling: Sampling,
        request_id: str,
    ) -> Sampled:
        text = self.turns[min(self.asked, len(self.turns) - 1)]
        whole = [*self.template.speak(text), self.template.end_of_turn(-1)[0]]
        ids = np.array(whole[:max_tokens], np.int32)
        versions = np.full(len(ids), self.version, np.int32)
        if self.asked:  # the weights change inside the second turn and no other
            versions[0 if self.asked > 1 else len(ids) // 2 :] += 1
        random = np.random.default_rng(self.asked)
        self.asked += 1
        self.clock.now += 1.1
        return Sampled(
            token_ids=ids,
            logprobs=-random.exponential(0.4, len(ids)).astype(np.float32),
            weight_version=versions,
            finish="stop" if len(whole) <= max_tokens else "length",
            prompt_tokens=len(prompt.ids),
            queued_s=0.2,
            first_token_s=0.3,
            seconds=1.1,
        )


def model_dir(directory: Path, family: str = "qwen3") -> Path:
    """A model directory of a family."""
    place = directory / family
    return place if place.exists() else make_model(place, family)


def called(name: str, **arguments: Any) -> CallRequest:
    """A call as a test writes it."""
    return CallRequest(name=name, arguments=arguments)


def play(
    model: Path,
    turns: Sequence[str | Sequence[CallRequest]],
    results: Mapping[str, Any],
    *,
    name: str = "north-depot__003",
    limits: Limits | None = None,
    reward: float | None = 1.0,
    fault: FaultNote | None = None,
    valid: bool = True,
) -> Trajectory:
    """What the loop makes of these turns and results of tools."""
    mine = voice(model)
    said = [turn if isinstance(turn, str) else _say(mine.template, turn) for turn in turns]
    clock = Clock()
    engine = SpokenEngine(mine.template, said, clock)
    loop = Loop(
        engine=engine,
        template=mine.template,
        parser=mine.parser,
        toolbelt=Belt({name: _tool(result, clock) for name, result in results.items()}),
        account=Account(limits=limits or Limits(context_tokens=20_000), clock=clock),
        sampling=Sampling(),
    )
    stop = asyncio.run(loop.run(opening("How many pallets are in the north depot?")))
    stop = Stop.FAULT if fault and not valid else stop
    who = Identity(
        trajectory_id=name,
        group_id="north-depot",
        sample=3,
        task="north-depot",
        harness="envkit mcp",
        harness_version="0.1",
        tokenizer_digest=mine.template.tokenizer_digest,
        template_digest=mine.template.template_digest,
        template_family=mine.template.family,
        engine=engine.identity,
    )
    outcome = Outcome(
        reward=reward,
        reward_valid=valid,
        loss_live=valid,
        verdict="no_verdict" if reward is None else "graded",
        fault=fault,
        phases={"start": 0.4, "act": 4.0, "grade": 0.2},
    )
    return Trajectory(identity=who, episode=loop.episode(stop), outcome=outcome)


def _tool(result: Any, clock: Clock) -> Any:
    def tool(_arguments: Mapping[str, Any]) -> Any:
        clock.now += 0.5
        return result

    return tool


def _say(template: ChatTemplate, calls: Sequence[CallRequest]) -> str:
    return say(template.parser_name, calls, content=SAID_BEFORE, opened=template.opens_thinking)


def write_run(run: Path, model: Path, rows: Sequence[Trajectory]) -> Path:
    """A run directory with these rows and a copy of the tokenizer."""
    template = voice(model).template
    template.save(run / "tokenizers" / template.tokenizer_digest)
    with Writer.open(run / "trajectories") as writer:
        for row in rows:
            writer.append(row)
    return run
