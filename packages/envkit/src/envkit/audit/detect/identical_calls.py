# SPDX-License-Identifier: Apache-2.0
"""``identical-calls``: the same call again and again, with the same result.

Evidence: three or more calls in a row with the same tool and arguments and, across messages, the
same result; or three or more copies in one message, where the agent could not have seen any result.
Polling with changing results is legitimate. A planning tool changes nothing, so its repetitions
weigh less. Over the corpus it stays the model's, except where a harness-owned rejection made it
repeat itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from envkit.audit import family
from envkit.audit.detect.types import Corpus, Detector, call_finding
from envkit.audit.types import Call, Finding, Owner, Run, Severity

NAME: Final = "identical-calls"
LENGTH: Final = 3


def judges(run: Run) -> bool:
    """Needs the calls with their arguments."""
    return run.has_calls


def find(run: Run) -> Iterable[Finding]:
    """One finding for each series."""
    for series in _repeated(run.calls):
        in_one = series[0].message == series[-1].message
        if len(series) >= LENGTH:
            yield _finding(run, series, in_one)


def _repeated(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Series of equal calls: first whole messages' copies, then what follows with equal results."""
    for _, group in groupby(calls, key=lambda call: (call.tool, call.arguments)):
        same = list(group)
        if len(same) >= LENGTH:
            yield from _split(same)


def _split(same: list[Call]) -> Iterator[list[Call]]:
    """Equal calls cut where the result changes; copies in one message need no equal result."""
    if same[0].message == same[-1].message:
        yield same
        return
    for _, group in groupby(same, key=lambda call: (call.answered, call.text)):
        yield list(group)


def _finding(run: Run, series: list[Call], in_one: bool) -> Finding:
    plan = family.is_plan(series[0].tool)
    manner = "copies in one message" if in_one else "times in a row with the same result"
    return call_finding(
        NAME,
        run,
        series[0],
        subject=series[0].tool,
        severity=Severity.INFO if plan else Severity.WARNING,
        evidence=f"{len(series)} {manner}: {series[0].arguments}",
        count=len(series),
        confidence=0.5 if plan else 0.8,
    )


def decide(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    """The model's, unless the first call of the series was refused through no fault of its own."""
    foreign = {
        (finding.file, finding.step): finding.owner
        for finding in corpus.decided
        if finding.owner not in (Owner.MODEL, Owner.UNKNOWN)
    }
    for finding in findings:
        yield replace(finding, owner=foreign.get((finding.file, finding.step), Owner.MODEL))


DETECTOR: Final = Detector(
    name=NAME,
    needs="tool calls with their arguments",
    judges=judges,
    find=find,
    decide=decide,
)
