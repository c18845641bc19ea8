# SPDX-License-Identifier: Apache-2.0
"""What the trajectories of a run come to: tokens, turns, stops, calls, where time and context went.

Contract: of every trajectory a few numbers are kept, however long it is. Shares are of what they
are named after; what was not measured is None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from envkit.preflight.stats import quantiles
from envkit.preflight.types import Quantiles
from envkit.trajectory.types import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One trajectory."""

    stop: str
    fault: str
    """Its code; empty where there is none."""
    tokens: int
    sampled_tokens: int
    turns: int
    calls: int
    calls_ok: int
    unread: int
    """Calls that could not be read."""
    cut_tokens: int
    """Of results, not shown at once."""
    nudged: bool
    own_s: float
    waited_s: float
    engine_s: float
    """Of its requests, together."""
    versions: tuple[int, ...]
    """Of the weights that sampled it."""


@dataclass(slots=True)
class Figures:
    """Of the trajectories that were stored."""

    seen: list[Seen] = field(default_factory=list[Seen])

    def __len__(self) -> int:
        return len(self.seen)

    def add(self, trajectory: Trajectory) -> None:
        """Count one more."""
        self.seen.append(seen(trajectory))

    @property
    def stops(self) -> dict[str, int]:
        """How many ended for each reason, the most frequent first."""
        return dict(Counter(each.stop for each in self.seen).most_common())

    @property
    def sampled_tokens(self) -> int:
        return sum(each.sampled_tokens for each in self.seen)

    @property
    def tokens_per_s(self) -> float | None:
        """A request's: sampled tokens a second, over all requests."""
        return _ratio(self.sampled_tokens, sum(each.engine_s for each in self.seen))

    @property
    def calls_ok(self) -> float | None:
        """Share of the calls that succeeded."""
        return _ratio(_sum(self.seen, "calls_ok"), _sum(self.seen, "calls"))

    def quantiles(self, name: str) -> Quantiles | None:
        """Over the trajectories, of one of `Seen`'s numbers."""
        return quantiles([float(getattr(each, name)) for each in self.seen])

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        spread = ("tokens", "sampled_tokens", "turns", "calls", "own_s", "waited_s")
        quantiles = {name: self.quantiles(name) for name in spread}
        return {
            "trajectories": len(self),
            "stops": self.stops,
            "tokens": _sum(self.seen, "tokens"),
            "sampled_tokens": self.sampled_tokens,
            "sampled_tokens_per_s": self.tokens_per_s,
            "tool_calls": _sum(self.seen, "calls"),
            "tool_calls_ok": _sum(self.seen, "calls_ok"),
            "calls_unread": _sum(self.seen, "unread"),
            "result_tokens_cut": _sum(self.seen, "cut_tokens"),
            "nudged": sum(each.nudged for each in self.seen),
            "own_s": sum(each.own_s for each in self.seen),
            "waited_s": sum(each.waited_s for each in self.seen),
            "weight_versions": sorted({v for each in self.seen for v in each.versions}),
            "each": {name: asdict(row) if row else None for name, row in quantiles.items()},
        }


def seen(trajectory: Trajectory) -> Seen:
    """What is kept of one."""
    episode, fault = trajectory.episode, trajectory.outcome.fault
    stream, used = episode.stream, episode.used
    return Seen(
        stop=episode.stop.value,
        fault=fault.code if fault else "",
        tokens=len(stream.token_ids),
        sampled_tokens=used.sampled_tokens,
        turns=used.turns,
        calls=len(episode.calls),
        calls_ok=sum(call.ok for call in episode.calls),
        unread=len(episode.parse_faults),
        cut_tokens=sum(call.cut_tokens for call in episode.calls),
        nudged=used.nudged_at is not None,
        own_s=used.own_s,
        waited_s=used.waited_s,
        engine_s=sum(request.seconds for request in episode.requests),
        versions=tuple(sorted(set(stream.weight_version[stream.loss_mask].tolist()))),
    )


def _sum(rows: Iterable[Seen], name: str) -> int:
    return sum(getattr(row, name) for row in rows)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
