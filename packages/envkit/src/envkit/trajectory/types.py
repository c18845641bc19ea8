# SPDX-License-Identifier: Apache-2.0
"""What one row of the trajectory store holds.

An `Episode` is what the harness saw: the token stream, the requests, the calls, why it stopped.
A `Trajectory` adds which rollout it was and what it was worth. Token columns are flat arrays of one
length n; position i of each speaks of the same token. Text is for people: it can be rebuilt from
ids, and ids are never rebuilt from text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

type Ids = npt.NDArray[np.int32]
type Mask = npt.NDArray[np.bool_]
type Floats = npt.NDArray[np.float32]


class Kind(StrEnum):
    """Where a stretch of the stream came from."""

    PROMPT = "prompt"
    """The system prompt, the tools, the instruction; up to where the model first samples."""
    MODEL = "model"
    """Sampled by the engine, stop token included. The only kind that is trained."""
    TOOL = "tool"
    """The observations of one turn, with what the chat template puts around them."""
    HARNESS = "harness"
    """Added by the loop: a repair message, a nudge, a stop token that the model did not sample."""


class Stop(StrEnum):
    """Why the episode ended."""

    FINAL = "final"
    """The model gave its answer."""
    TURN_CAP = "turn_cap"
    """It used up its turns or its tool calls."""
    CONTEXT = "context"
    """No room was left in the context."""
    LENGTH = "length"
    """A turn used up its tokens, or its calls could not be read, more often than is repaired."""
    TIMEOUT = "timeout"
    """The model's own time was used up: its sampling and its own commands, no waiting."""
    FAULT = "fault"
    """A fault ended it; the outcome says whose, and the reward is valid only if the model's own."""


type Finish = Literal["stop", "length", "abort"]
"""Why the engine ended a request: a stop token, the limit asked for, or the engine's own doing."""

type LogprobsMode = Literal["raw", "processed"]
"""Of the distribution before temperature and truncation, or of the one that was sampled from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch ``[start, stop)`` of the stream; segments tile it without gaps."""

    kind: Kind
    start: int
    stop: int
    turn: int
    """From 0; the prompt is of turn 0, an observation of the turn whose calls it answers."""
    finish: Finish | None = None
    """Of a model segment."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stream:
    """The tokens as the engine saw them, and what of them it sampled."""

    token_ids: Ids
    loss_mask: Mask
    """True exactly where the engine sampled the token."""
    logprobs: Floats
    """Natural logarithm, of sampled tokens; NaN elsewhere."""
    weight_version: Ids
    """Which weights sampled this token; -1 elsewhere. It may change inside a turn."""
    segments: tuple[Segment, ...]
    topk_ids: Ids | None = None
    """``[n, k]``, -1 where nothing was sampled; None where none were asked for."""
    topk_logprobs: Floats | None = None
    """``[n, k]``, NaN where nothing was sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineId:
    """Which engine sampled."""

    model: str
    """Name it is served by."""
    model_digest: str = ""
    """Of its weights, where the engine tells; empty where it does not."""
    dtype: str = ""
    server: str = ""
    """Program and version, ``vllm 0.32.0``."""
    protocol: Literal["generate", "completions"] = "generate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens were drawn; the same for every request of an episode."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 for all."""
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    grammar: str = ""
    logprobs_mode: LogprobsMode = "raw"
    top_logprobs: int = 0
    """How many alternatives a token is recorded with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an episode may use. Zero is no limit, except for ``context_tokens``."""

    context_tokens: int = 131_072
    """Prompt, samples and observations together; at most what the engine takes."""
    turns: int = 100
    tool_calls: int = 0
    tokens_per_turn: int = 16_384
    own_s: float = 3600.0
    """Seconds of the model's own: sampling and its own commands; waiting is not counted."""
    tool_result_tokens: int = 10_000
    """Of one result; the rest lies in a file that the agent can read."""
    repairs: int = 5
    """How many turns in all may be answered with a repair message."""
    nudge_ratio: float = 0.2
    """Free share of the context at which the model is told once; 0 never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What of the limits an episode used."""

    turns: int = 0
    tool_calls: int = 0
    sampled_tokens: int = 0
    own_s: float = 0.0
    waited_s: float = 0.0
    """For the engine's queue, starts, faulted tools: nobody's but the infrastructure's."""
    repairs: int = 0
    nudged_at: int | None = None
    """Turn after which the nudge was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """One request to the engine, as often as it was sent."""

    turn: int
    started_s: float
    """From the start of the episode."""
    first_token_s: float
    """From its own start; equal to ``seconds`` where the engine does not stream."""
    seconds: float
    prompt_tokens: int
    sampled_tokens: int
    finish: Finish
    kv_version: int = -1
    """The oldest weights whose keys and values its tokens attend to; -1 where it is not known."""
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One tool call."""

    call_id: str
    turn: int
    name: str
    ok: bool
    started_s: float
    """From the start of the episode."""
    seconds: float
    fingerprint: str
    """sha256 of name and canonical arguments: equal calls have equal ones."""
    observation_sha256: str = ""
    """Of the ids of the turn's observation segment, little-endian int32."""
    code: str = ""
    """Of an error."""
    cut_tokens: int = 0
    """How many tokens of its result the model was not shown at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseFault:
    """A call that could not be read, and what the model was told."""

    turn: int
    code: str
    """``malformed``, ``unclosed``, ``unknown_tool``, ``wrong_type``, ``missing_argument``,
    ``unknown_argument``, ``inside_think``, ``cut_off``; ``no_call`` where an answer is a tool's."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultNote:
    """A fault, as plain data."""

    code: str
    owner: str
    phase: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptNote:
    """An attempt of the trial; the last one is the trajectory's own."""

    number: int
    """From 1."""
    started_at: float
    """Unix time."""
    seconds: float
    reward: float | None
    reward_valid: bool
    fault: FaultNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which rollout this is, and of what."""

    trajectory_id: str
    """Unique in a store."""
    group_id: str
    """The prompt: samples of one group are compared with each other."""
    sample: int
    task: str
    task_digest: str = ""
    image_digest: str = ""
    harness: str = ""
    """Toolbelt and loop, ``envkit mcp``."""
    harness_version: str = ""
    tokenizer_digest: str = ""
    """Of the tokenizer's file; the store keeps a copy by this name."""
    template_digest: str = ""
    template_family: str = ""
    engine: EngineId = EngineId(model="")
    sampling: Sampling = Sampling()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Episode:
    """What the loop saw from the prompt to its end."""

    stream: Stream
    stop: Stop
    limits: Limits
    used: Used
    requests: tuple[EngineRequest, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    parse_faults: tuple[ParseFault, ...] = ()
    final_answer: str | None = None
    evaluation: bool = False
    """No nudge was to be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What it was worth, and whether that may be trained on."""

    reward: float | None
    reward_valid: bool
    """It exists, and nobody's fault but the model's stands against it."""
    loss_live: bool
    """It is valid, and neither stale nor filtered out."""
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    verdict: Literal["graded", "no_verdict"] = "no_verdict"
    fault: FaultNote | None = None
    attempts: tuple[AttemptNote, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds by phase of the last attempt."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trajectory:
    """One row."""

    identity: Identity
    episode: Episode
    outcome: Outcome
