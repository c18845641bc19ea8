# SPDX-License-Identifier: Apache-2.0
"""Where the context and the time of an episode went.

Contract: the shares of the context add up to it, those of the time to the end of the last request
or call. Time that neither a request nor a call took is waiting: for a turn on the machine, between.
"""

from __future__ import annotations

from collections import defaultdict

from envkit.show.parts import Share, Stretch
from envkit.trajectory.types import EngineRequest, Episode, Kind


def tokens(episode: Episode) -> tuple[Share, ...]:
    """Tokens by where they came from, and what is left."""
    sums = defaultdict[str, int](int)
    for stretch in stream(episode):
        sums[stretch.kind] += int(stretch.stop - stretch.start)
    left = episode.limits.context_tokens - len(episode.stream.token_ids)
    found = [Share(name=kind.value, amount=sums[kind.value]) for kind in Kind if sums[kind.value]]
    return (*found, Share(name="free", amount=max(0, left)))


def seconds(episode: Episode) -> tuple[Share, ...]:
    """Seconds by what was done in them."""
    end = ends_at(episode)
    streamed = [each for each in episode.requests if each.first_token_s < each.seconds]
    first = sum(each.first_token_s for each in streamed)
    model = sum(each.seconds for each in episode.requests) - first
    tools = sum(each.seconds for each in episode.calls)
    rest = end - first - model - tools
    named = {"first token": first, "model": model, "tool": tools, "between": rest}
    return tuple(Share(name=name, amount=amount) for name, amount in named.items() if amount > 0)


def ends_at(episode: Episode) -> float:
    """Seconds from the start to the end of the last request or call."""
    ends = [each.started_s + each.seconds for each in (*episode.requests, *episode.calls)]
    return max(ends, default=0.0)


def stream(episode: Episode) -> tuple[Stretch, ...]:
    """The segments in order."""
    return tuple(
        Stretch(
            kind=each.kind.value,
            start=each.start,
            stop=each.stop,
            title=f"turn {each.turn} {each.kind.value}: {each.stop - each.start} tokens",
        )
        for each in episode.stream.segments
    )


def course(episode: Episode) -> tuple[Stretch, ...]:
    """Requests and calls by when they were."""
    found = [part for each in episode.requests for part in _request(each)]
    found += [
        Stretch(
            kind="tool" if each.ok else "failed",
            start=each.started_s,
            stop=each.started_s + each.seconds,
            title=f"turn {each.turn} {each.name}: {each.seconds:.2f} s",
        )
        for each in episode.calls
    ]
    return tuple(sorted(found, key=lambda each: each.start))


def _request(each: EngineRequest) -> tuple[Stretch, ...]:
    """What came before its first token, where that is known, and the rest."""
    first = each.first_token_s if each.first_token_s < each.seconds else 0.0
    starts, ends = each.started_s, each.started_s + each.seconds
    title = f"turn {each.turn} sampled for {each.seconds:.2f} s"
    rest = Stretch(kind="model", start=starts + first, stop=ends, title=title)
    if not first:
        return (rest,)
    title = f"turn {each.turn} waited {first:.2f} s for its first token"
    return Stretch(kind="first-token", start=starts, stop=starts + first, title=title), rest
