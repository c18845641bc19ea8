# SPDX-License-Identifier: Apache-2.0
"""How long trials are and what they spend their time on: made up, or out of a store.

Contract: the same assumptions, store and seed give the same trials. A recorded trial counts if its
reward is valid. Seconds of waiting are those of a trial in which no engine works for it; they are
taken as they were recorded, whatever was under way beside it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rltrain.buffer.simulate import Lengths
from rltrain.plan.assumptions import TAIL, Assumptions
from rltrain.refused import Refused

if TYPE_CHECKING:
    from envkit.trajectory.types import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One."""

    tokens: int
    """At its end, prompt and observations among them."""
    prompt: int
    sampled: int
    waits_s: float
    """For its sandbox, its tools, its verifier."""
    live: float
    """Mean tokens from its first request to the end of its last one."""

    @property
    def read(self) -> int:
        """Tokens that an engine reads and does not sample, if it reads each once."""
        return self.tokens - self.sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Groups of trials, for a run to be drawn from."""

    groups: tuple[tuple[Trial, ...], ...]
    source: str
    """Where they are from, in words."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All of them."""
        return tuple(each for group in self.groups for each in group)

    def mean(self, name: str) -> float:
        """Of a figure of a trial."""
        return fmean(getattr(each, name) for each in self.trials)

    def live(self, waits: float = 0.0) -> float:
        """Mean tokens of a trial that is under way and past its start: long ones are met more
        often, by the tokens that they sample and the seconds that they wait, ``waits`` tokens to a
        second."""
        weights = [each.sampled + waits * each.waits_s for each in self.trials]
        total = sum(weights)
        if not total:
            return self.mean("live")
        return sum(w * each.live for w, each in zip(weights, self.trials, strict=True)) / total

    def drawn(self, groups: int, samples: int, seed: int) -> list[list[Trial]]:
        """So many groups of so many samples: groups in a drawn order, again and again, and samples
        of each, again where it has too few."""
        source = random.Random(seed)
        order: list[tuple[Trial, ...]] = []
        while len(order) < groups:
            order += source.sample(self.groups, len(self.groups))
        return [_of_group(source, group, samples) for group in order[:groups]]


def _of_group(source: random.Random, group: Sequence[Trial], samples: int) -> list[Trial]:
    if len(group) >= samples:
        return source.sample(group, samples)
    return [source.choice(group) for _ in range(samples)]


def made_up(told: Assumptions, context: int, groups: int, samples: int, seed: int) -> Population:
    """Drawn from the distribution that is assumed."""
    try:
        shape = told.lengths.of(context)
    except ValueError as error:
        raise Refused(f"lengths.{error}; set lengths.p95 above it with --assume") from error
    lengths = Lengths(
        median=shape.median,
        sigma=shape.sigma,
        by_prompt=told.lengths.by_prompt,
        least=shape.least,
        most=shape.most,
    )
    drawn = lengths.drawn(groups, samples, seed)
    return Population(
        groups=tuple(tuple(_made(told, each, shape.prompt) for each in group) for group in drawn),
        source=(
            f"lognormal: median {shape.median:,.0f}, p95"
            f" {shape.median * math.exp(TAIL * shape.sigma):,.0f} tokens, clipped to"
            f" {shape.least:,} to {shape.most:,}"
        ),
    )


def _made(told: Assumptions, tokens: int, prompt: int) -> Trial:
    prompt = min(prompt, tokens // 2)
    sampled = max(1, round(told.lengths.sampled * (tokens - prompt)))
    turns = max(1, math.ceil(sampled / told.time.turn_tokens))
    return Trial(
        tokens=tokens,
        prompt=prompt,
        sampled=sampled,
        waits_s=told.time.start_s + turns * told.time.tool_s,
        live=(prompt + tokens) / 2,
    )


# --- recorded -------------------------------------------------------------------------------------


def recorded(directory: Path) -> Population:
    """Those in a trajectory store, or in an ``--out`` that has one.

    Raises:
        Refused: there is none, or nothing in it counts.
    """
    from envkit.trajectory.store import Store
    from envkit.trajectory.types import Trajectory as Row

    found = stores(directory)
    if not found:
        raise Refused(
            f"{directory}: no segment of a trajectory store is in it or below it; name a store, or"
            " an --out of envkit run, with --trajectories"
        )
    rows = [each for place in found for each in Store(place).scan() if isinstance(each, Row)]
    groups: dict[str, list[Trial]] = {}
    for row in rows:
        if row.outcome.reward_valid:
            groups.setdefault(row.identity.group_id, []).extend(read_trial(row))
    kept = tuple(tuple(group) for group in groups.values() if group)
    if not kept:
        raise Refused(f"{directory}: none of its {len(rows)} trajectories has a valid reward")
    count = sum(map(len, kept))
    return Population(groups=kept, source=f"{count} trajectories of {len(kept)} prompts")


def stores(directory: Path) -> list[Path]:
    """Directories with segments of a store, at or below one."""
    if not directory.is_dir():
        return []
    return sorted({each.parent for each in directory.rglob("segment-*.arrow")})


def read_trial(row: Trajectory) -> Iterator[Trial]:
    """Of a row; none where it never sampled."""
    episode = row.episode
    tokens, sampled = len(episode.stream.token_ids), episode.used.sampled_tokens
    prompt = next((each.stop for each in episode.stream.segments), 0)
    if not sampled:
        return
    engine_s = sum(each.seconds for each in episode.requests)
    yield Trial(
        tokens=tokens,
        prompt=prompt,
        sampled=sampled,
        waits_s=max(0.0, whole_s(row) - engine_s),
        live=_live(row) or (prompt + tokens) / 2,
    )


def whole_s(row: Trajectory) -> float:
    """Of its last attempt, from start to stop; or of its episode, where phases were not told."""
    if row.outcome.attempts:
        return row.outcome.attempts[-1].seconds
    if row.outcome.phases:
        return sum(row.outcome.phases.values())
    ends = (each.started_s + each.seconds for each in row.episode.requests)
    return max(ends, default=0.0)


def _live(row: Trajectory) -> float:
    """Tokens that a cache is to keep, over the time from its first request to its last one's
    end."""
    requests = row.episode.requests
    if not requests:
        return 0.0
    ends = [*(each.started_s for each in requests[1:]), requests[-1].started_s]
    ends[-1] += requests[-1].seconds
    area = seconds = 0.0
    for each, end in zip(requests, ends, strict=True):
        span = max(0.0, end - each.started_s)
        working = min(each.seconds, span)
        mean = each.prompt_tokens + each.sampled_tokens / 2
        after = each.prompt_tokens + each.sampled_tokens
        area += working * mean + (span - working) * after
        seconds += span
    return area / seconds if seconds else 0.0
