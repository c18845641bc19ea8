# SPDX-License-Identifier: Apache-2.0
"""Findings for a person and for a program.

Contract: the keys of ``envkit.doctor/1`` keep their meaning; further ones may be added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.text import Text

from envkit import __version__
from envkit.doctor.types import Finding, Status
from envkit.preflight.text import one_line

SCHEMA: Final = "envkit.doctor/1"
COLOUR: Final = {
    Status.OK: "green",
    Status.INFO: "dim",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
}
NAME_WIDTH: Final = 17


def exit_code(findings: Sequence[Finding]) -> int:
    """0 where nothing fails, else 1."""
    return int(any(finding.status is Status.FAIL for finding in findings))


def lines(finding: Finding) -> Iterator[Text]:
    """One line that says what, and one that says what to do, if anything."""
    head = (f"{finding.status:<4}", COLOUR[finding.status])
    yield Text.assemble(head, f"  {finding.name:<{NAME_WIDTH}}  {one_line(finding.text, 600)}")
    if finding.fix:
        purpose = f"  (for {one_line(finding.needed_for, 100)})" if finding.needed_for else ""
        yield Text(f"{'':<{NAME_WIDTH + 8}}do: {one_line(finding.fix, 600)}{purpose}")


def to_json(findings: Sequence[Finding], trials: int) -> dict[str, Any]:
    """The published form."""
    return {
        "schema": SCHEMA,
        "envkit": __version__,
        "for": trials,
        "ok": exit_code(findings) == 0,
        "findings": [asdict(finding) for finding in findings],
    }
