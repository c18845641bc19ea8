# SPDX-License-Identifier: Apache-2.0
"""``package-discovery``: an import failed and the agent spent calls on finding out what there is.

Evidence: a *failed* call whose exception line is ``No module named X`` (the agent's own probe,
``python3 -c 'import X' || echo no``, exits 0 and is no failure). One finding for each module and
run; its count is the calls from there up to the first that worked without being a probe. Over the
corpus: missing in three tasks or more means that it was to be installed; a module the agent wrote
itself, or a name seen once, is not the environment's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from envkit.audit.detect.types import (
    WIDESPREAD,
    Corpus,
    Detector,
    by_subject,
    call_finding,
    has_results,
    own,
    tasks_of,
)
from envkit.audit.types import Call, Finding, Owner, Run

NAME: Final = "package-discovery"

_MISSING: Final = re.compile(
    r"(?:^|: )(?:ModuleNotFoundError: |ImportError: )?"
    r"No module named ['\"]?([A-Za-z_][\w.\-]{0,80})"
)
_PROBE: Final = re.compile(
    r"\b(?:pip3?|conda|poetry|uv|apt|apt-get|apk)\s+(?:-\w+\s+)*"
    r"(?:install|list|show|freeze|search|add)\b"
    r"|-m\s+(?:pip|ensurepip)\b|\bwhich\b|\bcommand -v\b|--version\b|sys\.version|site-packages"
    r"|\bimport \w+[^;\n]*;?\s*print\(\s*(?:['\"]|\w+\.__version__)"
)


def find(run: Run) -> Iterable[Finding]:
    """One finding for each module that was missing when the agent needed it."""
    seen: set[str] = set()
    for index, call in enumerate(run.calls):
        module = missing_module(call)
        if not module or module in seen or _wrote(run, index, module):
            continue
        seen.add(module)
        spent, worked = _until_work(run, index)
        yield call_finding(NAME, run, call, subject=module, recovered=worked, count=spent)


def missing_module(call: Call) -> str:
    """The top-level module whose import ended the call; empty where something else did."""
    found = _MISSING.search(call.failure.cause) if call.failure else None
    return found[1].split(".")[0] if found else ""


def _wrote(run: Run, index: int, module: str) -> bool:
    """Whether the agent named ``module.py`` itself: then it looked for its own file."""
    name = f"{module}.py"
    return any(name in call.arguments for call in run.calls[: index + 1])


def _until_work(run: Run, index: int) -> tuple[int, bool]:
    """Calls of the tool from the failure on that were spent, and whether one worked in the end."""
    tool, spent = run.calls[index].tool, 0
    for call in run.calls[index:]:
        if call.tool != tool:
            continue
        if call.answered and call.failure is None and not is_probe(call):
            return spent, True
        spent += 1
    return spent, False


def is_probe(call: Call) -> bool:
    """Whether a command only asks what is installed, or installs it."""
    text = call.parsed if isinstance(call.parsed, str) else orjson.dumps(call.parsed).decode()
    return len(text) <= 600 and bool(_PROBE.search(text))


def decide(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    """By module: to be preinstalled, or one task's own need."""
    del corpus
    for group in by_subject(findings).values():
        widespread = len(tasks_of(group)) >= WIDESPREAD
        owner = Owner.ENVIRONMENT if widespread else Owner.UNKNOWN
        yield from own(group, owner, 0.9 if widespread else 0.5)


DETECTOR: Final = Detector(
    name=NAME,
    needs="tool results",
    judges=has_results,
    find=find,
    decide=decide,
)
