# SPDX-License-Identifier: Apache-2.0
"""The audit as one screen of calls: read, count, detect, decide, report.

One run is in memory at a time. What remains of it are counts, its facts and its findings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from envkit.audit.detect import DETECTORS
from envkit.audit.detect.polluted_zero import NAME as POLLUTED_ZERO
from envkit.audit.detect.types import Corpus, facts
from envkit.audit.read import Item, read
from envkit.audit.report import (
    DetectorRow,
    Example,
    FingerprintRow,
    Report,
    Rewards,
    ToolRow,
)
from envkit.audit.tally import Tally
from envkit.audit.text import label, shown
from envkit.audit.types import Finding, Ignored, Owner, Run, Unreadable
from envkit.preflight.stats import rate


def _silent(item: Item) -> None:
    del item


@dataclass(slots=True)
class _State:
    tally: Tally = field(default_factory=Tally)
    corpus: Corpus = field(default_factory=Corpus)
    found: dict[str, list[Finding]] = field(default_factory=dict[str, list[Finding]])
    judged: dict[str, int] = field(default_factory=dict[str, int])
    ignored: int = 0
    unreadable: list[Unreadable] = field(default_factory=list[Unreadable])


def examine(root: Path, seen: Callable[[Item], None] = _silent) -> Report:
    """Audit ``root``; ``seen`` hears of every item that was read, for progress."""
    state = _State()
    for item in read(root):
        _take(state, item)
        seen(item)
    _decide(state)
    return _report(state)


def _take(state: _State, item: Item) -> None:
    match item:
        case Run():
            _detect(state, item)
        case Unreadable(file=file, reason=reason):
            state.unreadable.append(Unreadable(file=label(file), reason=shown(reason)))
        case Ignored(count=count):
            state.ignored += count


def _detect(state: _State, run: Run) -> None:
    state.tally.add(run)
    state.corpus.runs.append(facts(run))
    for detector in DETECTORS:
        if detector.judges(run):
            state.judged[detector.name] = state.judged.get(detector.name, 0) + 1
            state.found.setdefault(detector.name, []).extend(detector.find(run))


def _decide(state: _State) -> None:
    """Owners, over the corpus, in the order of the detectors."""
    corpus = state.corpus
    corpus.tool_calls = {name: count.calls for name, count in state.tally.tools.items()}
    for detector in DETECTORS:
        decided = list(detector.decide(state.found.get(detector.name, []), corpus))
        state.found[detector.name] = decided
        corpus.decided.extend(decided)


def _report(state: _State) -> Report:
    findings = state.corpus.decided
    return Report(
        runs=state.tally.runs,
        tools=_tools(state.tally),
        fingerprints=_fingerprints(state.tally, findings),
        detectors={
            detector.name: _row(state, detector.name, detector.needs) for detector in DETECTORS
        },
        findings=findings,
        rewards=_rewards(state.corpus),
        ignored=state.ignored,
        unreadable=state.unreadable,
    )


def _tools(tally: Tally) -> dict[str, ToolRow]:
    """Most failures first."""
    rows: dict[str, ToolRow] = {}
    for name, count in sorted(
        tally.tools.items(), key=lambda kv: (-kv[1].failed, -kv[1].calls, kv[0])
    ):
        share = rate(count.failed, count.calls)
        rows[name] = ToolRow(
            calls=count.calls,
            failed=count.failed,
            low=share.low,
            high=share.high,
            runs=len(count.runs),
        )
    return rows


def _fingerprints(tally: Tally, findings: list[Finding]) -> list[FingerprintRow]:
    foreign = (finding.fingerprint for finding in findings if finding.owner is not Owner.MODEL)
    return [
        FingerprintRow(
            text=text,
            tool=tool,
            count=count.count,
            runs=len(count.runs),
            example=Example(file=count.file, step=count.step),
        )
        for (text, tool), count in tally.ranked(foreign)
    ]


def _row(state: _State, name: str, needs: str) -> DetectorRow:
    findings = state.found[name]
    runs = len({finding.run for finding in findings})
    judged = state.judged.get(name, 0)
    return DetectorRow(findings=len(findings), runs=runs, judged=judged, needs=needs)


def _rewards(corpus: Corpus) -> Rewards:
    """Valid: recorded, not called invalid by the record, and no polluted zero."""
    polluted = {finding.run for finding in corpus.decided if finding.detector == POLLUTED_ZERO}
    recorded = [(facts, facts.reward) for facts in corpus.runs if facts.reward is not None]
    valid = [reward for run, reward in recorded if run.valid and run.id not in polluted]
    return Rewards(recorded=tuple(reward for _, reward in recorded), valid=tuple(valid))


def mean(values: tuple[float, ...]) -> float | None:
    """The mean, None of nothing."""
    return math.fsum(values) / len(values) if values else None
