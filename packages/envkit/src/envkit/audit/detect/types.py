# SPDX-License-Identifier: Apache-2.0
"""What a detector is, and what it may know of the corpus.

A detector says which evidence it needs, judges one run at a time, and decides afterwards, over all
its findings, whose doing they are. All three are pure functions. A run without the evidence is *not
judged*, which is something else than clean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from envkit.audit.fingerprint import fingerprint
from envkit.audit.text import label, shown
from envkit.audit.types import Call, Finding, Owner, Run, Severity

WIDESPREAD: int = 3
"""In this many different tasks the same fault is nobody's slip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What remains of a run once it has been judged."""

    id: str
    """As in `Finding.run`."""
    answered: bool | None
    reward: float | None
    valid: bool
    """The record does not say that the reward is invalid."""


def facts(run: Run) -> Facts:
    """The facts of a run."""
    verdict = run.verdict
    return Facts(
        id=label(run.id),
        answered=run.answered,
        reward=verdict.reward if verdict else None,
        valid=verdict is None or verdict.valid is not False,
    )


@dataclass(slots=True, kw_only=True)
class Corpus:
    """All runs, in the form that fits in memory, and what is decided so far."""

    runs: list[Facts] = field(default_factory=list[Facts])
    tool_calls: dict[str, int] = field(default_factory=dict[str, int])
    decided: list[Finding] = field(default_factory=list[Finding])
    """Findings of the detectors before this one, with their final owners."""


def _keep(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    del corpus
    return findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """One thing to look for."""

    name: str
    needs: str
    """The evidence without which a run is not judged, in words."""
    judges: Callable[[Run], bool]
    find: Callable[[Run], Iterable[Finding]]
    decide: Callable[[Sequence[Finding], Corpus], Iterable[Finding]] = _keep


def call_finding(
    detector: str,
    run: Run,
    call: Call,
    *,
    subject: str,
    recovered: bool | None = None,
    owner: Owner = Owner.UNKNOWN,
    severity: Severity = Severity.WARNING,
    evidence: str = "",
    count: int = 1,
    confidence: float = 0.5,
) -> Finding:
    """A finding about one call, citing the message with its result."""
    failure = call.failure
    return Finding(
        detector=detector,
        severity=severity,
        owner=owner,
        run=label(run.id),
        task=label(run.task),
        file=label(call.file or run.file),
        step=call.step,
        tool=shown(call.tool, 120),
        fingerprint=fingerprint(failure.cause) if failure else "",
        evidence=shown(evidence or _said(call)),
        confidence=confidence,
        subject=shown(subject, 120),
        recovered=recovered,
        count=count,
    )


def _said(call: Call) -> str:
    """The cause first: of a long traceback the end says more than the start."""
    failure = call.failure
    if failure is None:
        return call.text
    whole = failure.text.strip()
    return whole if whole.startswith(failure.cause) else f"{failure.cause} | {whole}"


def run_finding(
    detector: str,
    run: Run,
    *,
    evidence: str,
    owner: Owner = Owner.UNKNOWN,
    severity: Severity = Severity.ERROR,
    file: str = "",
    subject: str = "",
    confidence: float = 0.9,
) -> Finding:
    """A finding about a run as a whole, citing its last message, or ``file`` as a whole."""
    return Finding(
        detector=detector,
        severity=severity,
        owner=owner,
        run=label(run.id),
        task=label(run.task),
        file=label(file or run.file),
        step=None if file else run.last_step,
        tool="",
        fingerprint="",
        evidence=shown(evidence),
        confidence=confidence,
        subject=shown(subject, 120),
    )


def has_results(run: Run) -> bool:
    """Whether the run recorded calls with their results."""
    return run.has_calls


def last_successes(run: Run) -> dict[tuple[str, str], int]:
    """For each operation of each tool, the index of the last call that worked."""
    return {
        (call.tool, call.operation): index
        for index, call in enumerate(run.calls)
        if call.answered and call.failure is None
    }


def own(findings: Iterable[Finding], owner: Owner, confidence: float) -> list[Finding]:
    """The findings with their owner decided."""
    return [replace(finding, owner=owner, confidence=confidence) for finding in findings]


def tasks_of(findings: Iterable[Finding]) -> set[str]:
    """The different tasks behind findings."""
    return {finding.task for finding in findings}


def by_subject(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings grouped by what they are about, in order of first appearance."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.subject, []).append(finding)
    return groups
