# SPDX-License-Identifier: Apache-2.0
"""The result of an audit, and its JSON form.

Every text in a report is safe to show: it went through `envkit.audit.text` when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from envkit.audit.types import Finding, Owner, Unreadable

SCHEMA: Final = "envkit.audit/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """Calls and failures of one tool; the interval is Wilson's at 95 %."""

    calls: int
    failed: int
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Where to look: ``step`` is the 0-based message index in ``file``."""

    file: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintRow:
    """One kind of error."""

    text: str
    tool: str
    count: int
    runs: int
    example: Example


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorRow:
    """What a detector found, in how many runs, and how many runs it could judge."""

    findings: int
    runs: int
    judged: int
    needs: str
    """The evidence a judged run has. Not in the JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewards:
    """Rewards on record, and those that nothing speaks against."""

    recorded: tuple[float, ...]
    valid: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that an audit has to say."""

    runs: int
    tools: Mapping[str, ToolRow]
    fingerprints: Sequence[FingerprintRow]
    detectors: Mapping[str, DetectorRow]
    findings: Sequence[Finding]
    rewards: Rewards
    ignored: int
    unreadable: Sequence[Unreadable]

    def runs_with(self, *owners: Owner) -> int:
        """Runs with a finding of one of these owners."""
        return len({finding.run for finding in self.findings if finding.owner in owners})

    @property
    def foreign(self) -> int:
        """Runs with a finding that is not shown to be the model's."""
        return self.runs_with(*(owner for owner in Owner if owner is not Owner.MODEL))

    @property
    def foreign_share(self) -> float | None:
        """`foreign` as a share of all runs; None without runs."""
        return self.foreign / self.runs if self.runs else None

    def found(self, detector: str) -> int:
        """Findings of one detector."""
        return self.detectors[detector].findings

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": SCHEMA,
            "runs": self.runs,
            "tools": {name: asdict(row) for name, row in self.tools.items()},
            "fingerprints": [asdict(row) for row in self.fingerprints],
            "detectors": {name: _detector(row) for name, row in self.detectors.items()},
            "findings": [_finding(finding) for finding in self.findings],
            "rewards": {"recorded": len(self.rewards.recorded), "valid": len(self.rewards.valid)},
            "ignored": self.ignored,
            "unreadable": [asdict(item) for item in self.unreadable],
        }


def _detector(row: DetectorRow) -> dict[str, int]:
    return {"findings": row.findings, "runs": row.runs, "judged": row.judged}


def _finding(finding: Finding) -> dict[str, Any]:
    fields = asdict(finding)
    return {**fields, "severity": finding.severity.value, "owner": finding.owner.value}
