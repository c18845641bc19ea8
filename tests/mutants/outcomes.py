# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: how each test ended, a JSON line each, in the file that `FILE` names.

Contract: "assertion" is said only where the test itself found something to be otherwise than it
says. An error of any other kind, a broken fixture and a passed time limit are said by their names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

PLUGIN = "envkit_mutant_outcomes"
"""As it is imported: by a name that nothing else has."""
FILE = "ENVKIT_MUTANT_OUTCOMES"
PASSED, ASSERTION = "passed", "assertion"
SHOWN = 110
"""Characters of what an error says."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, None]:
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.skipped:
        _say(item.nodeid, f"skipped: {report.longreprtext.strip()[-200:]}")
    elif call.excinfo is not None:
        _say(item.nodeid, _kind(call.excinfo, call.when), str(call.excinfo.value))
    elif call.when == "call":
        _say(item.nodeid, PASSED)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _say(report.nodeid, f"not collected: {report.longreprtext.strip()[-200:]}")


def _kind(error: pytest.ExceptionInfo[BaseException], when: str) -> str:
    name = error.typename
    if when != "call":
        return f"{name} in {when}"
    if isinstance(error.value, pytest.fail.Exception):
        return name if str(error.value).startswith("Timeout") else ASSERTION
    in_tests = "tests" in Path(error.traceback[-1].path).parts
    return ASSERTION if isinstance(error.value, AssertionError) and in_tests else name


def _say(test: str, ended: str, why: str = "") -> None:
    line = [test, ended, " ".join(why.split())[:SHOWN]]
    with open(os.environ[FILE], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
