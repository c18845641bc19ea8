# SPDX-License-Identifier: Apache-2.0
"""Count calls, failures and fingerprints while runs stream by.

Contract: memory grows with the number of runs and of *different* errors, never with the length of a
run. The first occurrence of an error is its citation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from envkit.audit.fingerprint import fingerprint
from envkit.audit.text import label, shown
from envkit.audit.types import Call, Run


@dataclass(slots=True)
class ToolCount:
    """One tool over the corpus."""

    calls: int = 0
    failed: int = 0
    runs: set[int] = field(default_factory=set[int])


@dataclass(slots=True, kw_only=True)
class ErrorCount:
    """One kind of error of one tool over the corpus."""

    file: str
    step: int
    count: int = 0
    runs: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class Tally:
    """All counts; `add` is called once for each run."""

    runs: int = 0
    tools: dict[str, ToolCount] = field(default_factory=dict[str, ToolCount])
    errors: dict[tuple[str, str], ErrorCount] = field(
        default_factory=dict[tuple[str, str], ErrorCount]
    )

    def add(self, run: Run) -> None:
        """Count one run."""
        for call in run.calls:
            tool = shown(call.tool, 120)
            count = self.tools.setdefault(tool, ToolCount())
            count.calls += 1
            count.runs.add(self.runs)
            if call.failure:
                count.failed += 1
                self._add_error(run, call, tool, call.failure.cause)
        self.runs += 1

    def _add_error(self, run: Run, call: Call, tool: str, cause: str) -> None:
        key = (fingerprint(cause), tool)
        count = self.errors.get(key)
        if count is None:
            count = ErrorCount(file=label(call.file or run.file), step=call.step)
            self.errors[key] = count
        count.count += 1
        count.runs.add(self.runs)

    def ranked(self, foreign: Iterable[str]) -> list[tuple[tuple[str, str], ErrorCount]]:
        """Errors seen in most runs first; of equal ones those that are not the model's."""
        known = set(foreign)
        return sorted(
            self.errors.items(),
            key=lambda item: (
                -len(item[1].runs),
                item[0][0] not in known,
                -item[1].count,
                item[0],
            ),
        )
