# SPDX-License-Identifier: Apache-2.0
"""``schema-rejection``: a tool refused the arguments because of their shape.

Evidence: the call failed, and the tool's own error is that of a validator (pydantic, JSON Schema,
JSON-RPC -32602, a list of required names, a Python signature). Words of a document or a business
rule never count. Over the corpus: a tool that refuses more than a fifth of its calls, in three
tasks or more, has a schema that models cannot fill in. In fewer tasks that is not known; below a
fifth the model slipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from envkit.audit.detect.types import (
    WIDESPREAD,
    Corpus,
    Detector,
    by_subject,
    call_finding,
    has_results,
    last_successes,
    own,
    tasks_of,
)
from envkit.audit.text import window
from envkit.audit.types import Channel, Failure, Finding, Owner, Run

NAME: Final = "schema-rejection"
SHARE: Final = 0.20
"""Of a tool's calls; above it the schema is at fault (measured: 24 % and 50 % for two tagged-union
tools, under 2 % for plain ones)."""

_VALIDATOR: Final = re.compile(
    r"\b\d+ validation errors? for \w"
    r"|\bValidation error: [\w.\[\]]+: "
    r"|Unable to extract tag using discriminator"
    r"|\[type=[a-z_]+, input_value="
    r"|Input validation error: "
    r"|is a required property\b|is not of type '|Additional properties are not allowed"
    r"|(?:MCP error )?-32602\b"
    r"|missing \d+ required (?:positional|keyword-only) argument|got an unexpected keyword argument"
)
_REQUIRED: Final = re.compile(
    r"(?:(?:Required|Missing required (?:parameters?|arguments?|fields?)): )"
    r"['\"]?[A-Za-z_]\w*['\"]?(?:, ['\"]?[A-Za-z_]\w*['\"]?)*\.?\Z"
)


def find(run: Run) -> Iterable[Finding]:
    """One finding for each call that a validator refused."""
    worked = last_successes(run)
    for index, call in enumerate(run.calls):
        if call.failure and is_rejection(call.failure):
            recovered = worked.get((call.tool, call.operation), -1) > index
            yield call_finding(NAME, run, call, subject=call.tool, recovered=recovered)


def is_rejection(failure: Failure) -> bool:
    """Whether the error is a validator's, not that of a program which the call ran."""
    if failure.exit_code is not None or failure.channel is Channel.EXIT:
        return False
    text = window(failure.text)
    return bool(_VALIDATOR.search(text) or _REQUIRED.match(text.strip()))


def decide(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    """By tool: a bad schema, slips of the model, or too little to tell."""
    for tool, group in by_subject(findings).items():
        share = len(group) / max(1, corpus.tool_calls.get(tool, 0))
        if share <= SHARE:
            yield from own(group, Owner.MODEL, 0.6)
        elif len(tasks_of(group)) >= WIDESPREAD:
            yield from own(group, Owner.HARNESS, 0.9)
        else:
            yield from own(group, Owner.UNKNOWN, 0.5)


DETECTOR: Final = Detector(
    name=NAME,
    needs="tool results",
    judges=has_results,
    find=find,
    decide=decide,
)
