# SPDX-License-Identifier: Apache-2.0
"""``envkit doctor``: prints what is found as it is found, or all of it as one document."""

from __future__ import annotations

import orjson
from rich.console import Console

from envkit.doctor.examine import examine
from envkit.doctor.report import exit_code, lines, to_json
from envkit.doctor.types import Finding


def doctor(*, trials: int, as_json: bool, reap: bool) -> int:
    """Examines this machine for so many trials at once; the exit code."""
    console = Console()
    findings: list[Finding] = []
    for finding in examine(trials=trials, reap=reap):
        findings.append(finding)
        for line in () if as_json else lines(finding):
            console.print(line, soft_wrap=True)
    if as_json:
        print(orjson.dumps(to_json(findings, trials), option=orjson.OPT_INDENT_2).decode())
    return exit_code(findings)
