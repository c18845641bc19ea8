# SPDX-License-Identifier: Apache-2.0
"""The list of a run's trajectories, a line each, and what they come to together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from envkit.preflight.report_text import reward_line
from envkit.preflight.stats import rewards
from envkit.preflight.text import count, percent
from envkit.show.source import Row
from envkit.trajectory.types import Stop, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One trajectory."""

    trajectory_id: str
    task: str
    sample: int
    reward: float | None
    reward_valid: bool
    stop: Stop
    turns: int
    calls: int
    failed_calls: int
    tokens: int
    sampled_tokens: int
    own_s: float
    waited_s: float
    parse_faults: int
    fault: str
    fault_owner: str

    @property
    def blamed(self) -> str:
        """The fault and whose it is; empty where there is none."""
        return f"{self.fault} ({self.fault_owner})" if self.fault else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All of them."""

    lines: tuple[Line, ...]
    damaged: tuple[str, ...]
    """Rows and files that cannot be read, and why."""

    @property
    def title(self) -> str:
        """How many there are."""
        return "1 trajectory" if len(self.lines) == 1 else f"{len(self.lines)} trajectories"


def listing(found: Iterable[Row]) -> Listing:
    """By task and sample; one is in memory at a time."""
    lines: list[Line] = []
    damaged: list[str] = []
    for row in found:
        if isinstance(row, Trajectory):
            lines.append(line_of(row))
        else:
            damaged.append(str(row))
    lines.sort(key=lambda line: (line.task, line.sample, line.trajectory_id))
    return Listing(lines=tuple(lines), damaged=tuple(damaged))


def line_of(row: Trajectory) -> Line:
    """What stands on the list."""
    who, episode, outcome = row.identity, row.episode, row.outcome
    return Line(
        trajectory_id=who.trajectory_id,
        task=who.task,
        sample=who.sample,
        reward=outcome.reward,
        reward_valid=outcome.reward_valid,
        stop=episode.stop,
        turns=episode.used.turns,
        calls=len(episode.calls),
        failed_calls=sum(not call.ok for call in episode.calls),
        tokens=len(episode.stream.token_ids),
        sampled_tokens=episode.used.sampled_tokens,
        own_s=episode.used.own_s,
        waited_s=episode.used.waited_s,
        parse_faults=len(episode.parse_faults),
        fault=outcome.fault.code if outcome.fault else "",
        fault_owner=outcome.fault.owner if outcome.fault else "",
    )


def summary(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Label and value."""
    valid = [each.reward for each in lines if each.reward is not None and each.reward_valid]
    faults = Counter(each.blamed for each in lines if each.fault)
    stops = Counter(each.stop.value for each in lines)
    calls, failed = sum(each.calls for each in lines), sum(each.failed_calls for each in lines)
    sampled = sum(each.sampled_tokens for each in lines)
    told = [
        ("reward", reward_line(rewards(valid, len(lines) - len(valid)), len(lines))),
        ("stops", ", ".join(f"{name} {n}" for name, n in stops.most_common())),
        (
            "use",
            f"{count(sum(each.turns for each in lines), 'turn')}, {count(calls, 'call')} "
            f"({percent(failed / calls) if calls else 'none'} failed), {sampled:,} tokens sampled "
            f"of {sum(each.tokens for each in lines):,}",
        ),
    ]
    if faults:
        told.append(("faults", ", ".join(f"{name} {n}" for name, n in faults.most_common())))
    unread = sum(each.parse_faults for each in lines)
    if unread:
        told.append(("unreadable", f"{count(unread, 'call')}, each answered with a repair message"))
    return told
