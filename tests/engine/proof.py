# SPDX-License-Identifier: Apache-2.0
"""What is to hold of rollouts with a real engine, as figures: for the tests and for the record.

`python -m nox -s bench -- real_engine_32` writes them down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envkit.agent.tokens import ChatTemplate, load_template
from envkit.preflight.types import TrialSpec
from envkit.trajectory.types import Kind, Segment

from .recorder import Seen
from .rescoring import rescored
from .rollouts import Asked, Rollout, specs_of

TRIALS = 32
ORDINARY = Asked(name="whole", trials=TRIALS, limits={"turns": 8, "tokens_per_turn": 256})
SHORT = Asked(name="short", trials=6, limits={"turns": 8, "tokens_per_turn": 12, "repairs": 1})
"""Turns that cannot be said in the tokens they get."""


def specs(out: Path, url: str, checkpoint: Path) -> list[TrialSpec]:
    """All trials of the proof, the ordinary ones first."""
    return [spec for asked in (ORDINARY, SHORT) for spec in specs_of(asked, out, url, checkpoint)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model sampled in one turn."""

    rollout: Rollout
    segment: Segment
    ids: list[int]
    logprobs: list[float]
    request_id: str


def turns(rollout: Rollout) -> list[Turn]:
    """Every model segment."""
    stream = rollout.episode.stream
    return [
        Turn(
            rollout=rollout,
            segment=each,
            ids=stream.token_ids[each.start : each.stop].tolist(),
            logprobs=stream.logprobs[each.start : each.stop].tolist(),
            request_id=f"{rollout.record.trial_id}-{each.turn}",
        )
        for each in stream.segments
        if each.kind is Kind.MODEL
    ]


def not_as_returned(rollouts: Sequence[Rollout], seen: Sequence[Seen]) -> list[str]:
    """Turns whose prompt, ids or logprobs are not those that went over the wire."""
    by_id = {each.request_id: each for each in seen}
    wrong = []
    for turn in (turn for rollout in rollouts for turn in turns(rollout)):
        went = by_id.get(turn.request_id)
        ids = turn.rollout.episode.stream.token_ids
        if went is None:
            wrong.append(f"{turn.request_id}: the engine never answered it")
        elif went.prompt != ids[: turn.segment.start].tolist():
            wrong.append(f"{turn.request_id}: another prompt")
        elif went.ids != turn.ids:
            wrong.append(f"{turn.request_id}: other ids")
        elif np.float32(went.logprobs).tolist() != turn.logprobs:
            wrong.append(f"{turn.request_id}: other logprobs")
    return wrong


def templates(checkpoint: Path, families: Sequence[str]) -> dict[str, ChatTemplate]:
    """By family."""
    return {name: load_template(checkpoint / name) for name in families}


def retokenised_otherwise(
    rollouts: Sequence[Rollout], by_family: dict[str, ChatTemplate]
) -> list[Turn]:
    """Turns whose text, tokenised again, gives other ids than were sampled."""
    return [
        turn
        for rollout in rollouts
        for turn in turns(rollout)
        for template in (by_family[rollout.family],)
        if template.speak(template.decode(turn.ids)) != turn.ids
    ]


def parallel_turns(rollouts: Sequence[Rollout]) -> int:
    """Turns that asked for more than one call and got one segment of observations."""
    return sum(
        calls > 1
        for rollout in rollouts
        for turn, calls in Counter(call.turn for call in rollout.episode.calls).items()
        if sum(
            each.kind is Kind.TOOL and each.turn == turn for each in rollout.episode.stream.segments
        )
        == 1
    )


def special_text_in_results(
    rollouts: Sequence[Rollout], by_family: dict[str, ChatTemplate]
) -> dict[str, int]:
    """By family: how often a stop token's text stands in a result as text, not as the token."""
    found: Counter[str] = Counter()
    for rollout in rollouts:
        template, stream = by_family[rollout.family], rollout.episode.stream
        for each in stream.segments:
            if each.kind is Kind.TOOL:
                ids = stream.token_ids[each.start : each.stop].tolist()
                found[rollout.family] += _as_text(template, ids)
    return dict(found)


def _as_text(template: ChatTemplate, ids: list[int]) -> int:
    text = template.decode(ids)
    return sum(text.count(template.decode([stop])) - ids.count(stop) for stop in template.stop_ids)


def figures(
    rollouts: Sequence[Rollout],
    short: Sequence[Rollout],
    seen: Sequence[Seen],
    checkpoint: Path,
    engine: tuple[str, str],
) -> dict[str, Any]:
    """All of it; ``engine`` is its URL and the name of the model."""
    both = [*rollouts, *short]
    by_family = templates(checkpoint, sorted({each.family for each in both}))
    rewards = [each.record.reward for each in rollouts]
    return {
        "trials": len(rollouts),
        "with_three_good_calls": sum(each.good_calls >= 3 for each in rollouts),
        "families": dict(Counter(each.family for each in rollouts)),
        "good_calls": [each.good_calls for each in rollouts],
        "rewards": rewards,
        "succeeded": sum(reward == 1.0 for reward in rewards),
        "reward_valid": sum(each.record.reward_valid for each in rollouts),
        "stops": dict(Counter(each.episode.stop for each in both)),
        "finishes": dict(Counter(t.segment.finish for each in both for t in turns(each))),
        "turns": sum(len(turns(each)) for each in both),
        "sampled_tokens": sum(each.episode.used.sampled_tokens for each in both),
        "not_as_returned": not_as_returned(both, seen),
        "rescored": asdict(rescored([each.episode.stream for each in both], *engine)),
        "turns_tokenised_otherwise": len(retokenised_otherwise(both, by_family)),
        "parallel_turns": parallel_turns(both),
        "special_text_in_results": special_text_in_results(both, by_family),
    }
