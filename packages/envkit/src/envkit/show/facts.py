# SPDX-License-Identifier: Apache-2.0
"""The words of a story's head: what it was worth and why, why it ended, by what it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from envkit.preflight.text import count, one_line, seconds
from envkit.show.parts import Story
from envkit.show.plain import plain
from envkit.trajectory.types import Episode, FaultNote, Outcome, Sampling, Stop

STOPS: Final[Mapping[Stop, str]] = MappingProxyType(
    {
        Stop.FINAL: "the model gave its answer",
        Stop.TURN_CAP: "it used up its turns or its tool calls",
        Stop.CONTEXT: "no room was left in the context",
        Stop.LENGTH: "cut-off or unreadable turns came more often than is repaired",
        Stop.TIMEOUT: "the model's own time was used up",
        Stop.FAULT: "a fault ended it",
    }
)


def reward(outcome: Outcome) -> str:
    """``0.5 invalid``, ``none``."""
    if outcome.reward is None:
        return "none"
    return f"{outcome.reward:.4g}{'' if outcome.reward_valid else ' invalid'}"


def validity(outcome: Outcome) -> str:
    """Whether the reward may be trained on, and why."""
    fault = outcome.fault
    if outcome.reward_valid and not outcome.loss_live:
        return "valid, but not live for the loss: stale, or filtered out by the trainer"
    if outcome.reward_valid:
        own = f"; {fault.code} is the model's own doing" if fault else ""
        return f"valid: graded, and nobody's fault but the model's stands against it{own}"
    what = "no reward" if outcome.reward is None else "not valid"
    if fault is None:
        return f"{what}: it was not graded" if outcome.reward is None else f"{what}: recorded so"
    return f"{what}: {blame(fault)}"


def blame(fault: FaultNote) -> str:
    """A fault in one sentence."""
    message = " ".join(fault.message.split())
    return f"{fault.code}, the {fault.owner}'s, in {fault.phase}: {message}"


def facts(story: Story) -> Iterator[tuple[str, str]]:
    """Label and value, what matters first."""
    who, episode = story.trajectory.identity, story.trajectory.episode
    outcome = story.trajectory.outcome
    yield "reward", validity(outcome)
    if len(outcome.rewards) > 1:
        yield "rewards", ", ".join(f"{k} {v:.4g}" for k, v in outcome.rewards.items())
    if episode.final_answer is not None:
        yield "answer", one_line(plain(episode.final_answer), 300)
    yield "stop", f"{episode.stop.value}: {STOPS[episode.stop]}"
    yield "used", ", ".join(used(episode))
    if len(outcome.attempts) > 1:
        yield (
            "attempts",
            "; ".join(
                f"{each.number}: {blame(each.fault) if each.fault else 'no fault'}"
                for each in outcome.attempts
            ),
        )
    yield "task", f"{who.task or '(unknown)'}, sample {who.sample}{_digest(who.task_digest)}"
    engine = who.engine
    words = (engine.server, engine.protocol, engine.dtype, _digest(engine.model_digest).strip())
    yield "engine", ", ".join(filter(None, (engine.model or "(unknown)", *words, _weights(story))))
    yield "sampling", ", ".join(sampling(who.sampling))
    yield "harness", f"{who.harness} {who.harness_version}{', evaluation' * episode.evaluation}"
    yield (
        "template",
        f"{who.template_family or '(unknown)'}{_digest(who.template_digest)}, "
        f"tokenizer{_digest(who.tokenizer_digest) or ' (unknown)'}",
    )


def used(episode: Episode) -> Iterator[str]:
    """What of each limit was used."""
    mine, limits = episode.used, episode.limits
    yield f"{count(mine.turns, 'turn')}{_of(limits.turns)}"
    yield f"{count(mine.tool_calls, 'call')}{_of(limits.tool_calls)}"
    length = len(episode.stream.token_ids)
    share = length / limits.context_tokens if limits.context_tokens else 0.0
    yield f"{length:,} of {limits.context_tokens:,} tokens of context ({100 * share:.0f} %)"
    yield f"{mine.sampled_tokens:,} sampled"
    yield f"own time {seconds(mine.own_s)}{f' of {limits.own_s:g} s' if limits.own_s else ''}"
    yield f"waited {seconds(mine.waited_s)}"
    if mine.repairs:
        yield f"{count(mine.repairs, 'repair')}{_of(limits.repairs)}"
    if mine.nudged_at is not None:
        yield f"nudged after turn {mine.nudged_at}"


def sampling(mine: Sampling) -> Iterator[str]:
    """What is not as it is by default, the temperature always."""
    usual = Sampling()
    yield f"temperature {mine.temperature:g}"
    for name in Sampling.__slots__:
        value = getattr(mine, name)
        if name not in ("temperature", "logprobs_mode") and value != getattr(usual, name):
            yield f"{name} {value}"
    yield f"{mine.logprobs_mode} logprobs"


def _of(limit: int) -> str:
    return f" of {limit}" if limit else ""


def _digest(digest: str) -> str:
    return f" {digest[:12]}" if digest else ""


def _weights(story: Story) -> str:
    found = sorted({int(each) for each in story.trajectory.episode.stream.weight_version} - {-1})
    if not found:
        return "weights not told"
    return f"weights {found[0]}" if len(found) == 1 else f"weights {found[0]} to {found[-1]}"
