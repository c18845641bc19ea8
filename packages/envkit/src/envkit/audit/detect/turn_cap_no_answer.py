# SPDX-License-Identifier: Apache-2.0
"""``turn-cap-no-answer``: the agent used all its turns and handed nothing in.

Evidence: the record says that it stopped at a cap; or, where it does not say why it stopped, it
names a cap, the turns reach it, and no submission was accepted (a refused one is none). Over the
corpus: with three or more calls lost to faults that are not the model's, the
environment owns it; with fewer, the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from envkit.audit import own
from envkit.audit.detect.types import Corpus, Detector, run_finding
from envkit.audit.types import Finding, Owner, Run

NAME: Final = "turn-cap-no-answer"
LOST: Final = 3
"""Calls lost to foreign faults from which on the cap is not the model's doing."""
COSTLY: Final = frozenset({"schema-rejection", "command-missing", "package-discovery"})


def judges(run: Run) -> bool:
    """Needs why it stopped, or the cap and whether there was an answer."""
    return bool(run.stop) or (run.turn_cap is not None and run.answered is not None)


def find(run: Run) -> Iterable[Finding]:
    """At most one finding."""
    if not _capped(run):
        return
    cap = f" of {run.turn_cap}" if run.turn_cap else ""
    made = f" and {len(run.calls)} calls" if run.stop else ""
    yield run_finding(NAME, run, evidence=f"{run.turns} turns{cap}{made}, no answer was handed in")


def _capped(run: Run) -> bool:
    if run.stop:
        return run.stop == own.TURN_CAP
    return run.turn_cap is not None and run.answered is False and run.turns >= run.turn_cap


def decide(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    """Whose turns they were."""
    lost: Counter[str] = Counter()
    for finding in corpus.decided:
        if finding.detector in COSTLY and finding.owner in (Owner.ENVIRONMENT, Owner.HARNESS):
            lost[finding.run] += finding.count
    for finding in findings:
        count = lost[finding.run]
        owner = Owner.ENVIRONMENT if count >= LOST else Owner.MODEL
        evidence = f"{finding.evidence}; {count} calls lost to faults that are not the model's"
        yield replace(finding, owner=owner, evidence=evidence, confidence=0.7)


DETECTOR: Final = Detector(
    name=NAME,
    needs="why it stopped, or a turn cap and whether an answer was handed in",
    judges=judges,
    find=find,
    decide=decide,
)
