# SPDX-License-Identifier: Apache-2.0
"""``polluted-zero``: a recorded zero that a fault plausibly caused.

Evidence: the reward is exactly 0 *and* either the record carries a typed exception after which a
reward is not the model's own, or says itself that the reward is invalid; or the run has a finding
that the corpus step gave to the environment or the harness and from which the agent never
recovered. A tool error alone is no evidence: business rules refuse too, and agents get past faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from envkit.audit.detect.types import Corpus, Detector, run_finding
from envkit.audit.types import Finding, Owner, Run, Severity

NAME: Final = "polluted-zero"
FOREIGN: Final = frozenset({Owner.ENVIRONMENT, Owner.HARNESS})


def judges(run: Run) -> bool:
    """Needs a recorded reward."""
    return run.verdict is not None and run.verdict.reward is not None


def find(run: Run) -> Iterable[Finding]:
    """What the record itself says about its zero."""
    verdict = run.verdict
    if verdict is None or verdict.reward != 0:
        return
    foreign = next((fault for fault in run.faults if not fault.reward_valid), None)
    if foreign:
        said = f"reward 0 with {foreign.code}: {foreign.message}"
        yield run_finding(NAME, run, evidence=said, owner=foreign.owner, file=verdict.source)
    elif verdict.valid is False:
        said = "reward 0, and the record says that it is not valid"
        yield run_finding(NAME, run, evidence=said, file=verdict.source, confidence=0.8)


def decide(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    """The recorded ones, then zeros with an unrecovered foreign fault."""
    yield from findings
    known = {finding.run for finding in findings}
    zeros = {facts.id for facts in corpus.runs if facts.reward == 0} - known
    for finding in corpus.decided:
        if finding.run in zeros and finding.owner in FOREIGN and finding.recovered is False:
            zeros.discard(finding.run)
            yield _linked(finding)


def _linked(cause: Finding) -> Finding:
    said = f"reward 0; never recovered from {cause.detector}: {cause.evidence}"
    return replace(
        cause, detector=NAME, severity=Severity.ERROR, evidence=said[:300], confidence=0.6
    )


DETECTOR: Final = Detector(
    name=NAME,
    needs="a recorded reward",
    judges=judges,
    find=find,
    decide=decide,
)
