# SPDX-License-Identifier: Apache-2.0
"""``missing-verdict``: the run was to be graded and nobody did.

Evidence: the record itself (a Harbor trial; a verifier list beside the messages) says that a
verdict was due, and there is none, or it cannot be read. Such a run belongs in the denominator and
is never a zero. A typed exception decides whose doing it is. Over the corpus: when three or more
runs are ungraded and all of them ended without an answer, it is a rule of the harness; a run with
an answer and no verdict is the verifier's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from envkit.audit.detect.types import WIDESPREAD, Corpus, Detector, run_finding
from envkit.audit.types import Finding, Owner, Run

NAME: Final = "missing-verdict"


def judges(run: Run) -> bool:
    """Needs a sign that the run was to be graded."""
    return run.verdict is not None


def find(run: Run) -> Iterable[Finding]:
    """At most one finding."""
    verdict = run.verdict
    if verdict is None or verdict.graded:
        return
    owner = run.faults[0].owner if run.faults else Owner.UNKNOWN
    said = f"{verdict.source}: {verdict.problem}"
    yield run_finding(NAME, run, evidence=said, owner=owner)


def decide(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    """A rule of the harness, a verifier that failed, or too little to tell."""
    unanswered = {facts.id for facts in corpus.runs if facts.answered is False}
    open_cases = {finding.run for finding in findings if finding.owner is Owner.UNKNOWN}
    rule = len(open_cases) >= WIDESPREAD and open_cases <= unanswered
    for finding in findings:
        if finding.owner is not Owner.UNKNOWN:
            yield finding
        elif rule:
            yield replace(finding, owner=Owner.HARNESS, confidence=0.8)
        elif finding.run not in unanswered:
            yield replace(finding, owner=Owner.VERIFIER, confidence=0.7)
        else:
            yield replace(finding, confidence=0.5)


DETECTOR: Final = Detector(
    name=NAME,
    needs="a sign that the run was to be graded",
    judges=judges,
    find=find,
    decide=decide,
)
