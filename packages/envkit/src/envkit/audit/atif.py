# SPDX-License-Identifier: Apache-2.0
"""Read ATIF trajectories (Agent Trajectory Interchange Format, 1.0 to 1.8) without Harbor.

A step holds the calls and their observations, so a call's citation is the 0-based index of its
step. Failure flags that Harbor's converters keep in ``extra`` (`is_error`, `exit_code`) are typed
evidence like any other. What envkit's own exporter says beside the steps is read by `own`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envkit.audit import family, own
from envkit.audit.document import ReadError
from envkit.audit.find import relative
from envkit.audit.openai_messages import make_call
from envkit.audit.shape import is_array, mapping, sequence, string
from envkit.audit.types import Call, Run


def is_atif(document: object) -> bool:
    """Whether a document claims this form."""
    return string(mapping(document).get("schema_version")).startswith("ATIF-")


def read_atif(path: Path, root: Path, document: object) -> Run:
    """A trajectory that stands alone, without the trial it came from.

    Raises:
        ReadError: the steps are not a list of objects with a source.
    """
    steps = checked_steps(document)
    calls = tuple(step_calls(steps))
    file = relative(path, root)
    stop, extra = own.stop_of(document), mapping(mapping(document).get("extra"))
    outcome = mapping(extra.get("outcome")) if stop else {}
    named = string(extra.get("task")) if stop else ""
    return Run(
        id=file,
        file=file,
        task=named or string(mapping(document).get("session_id")) or file,
        form="atif",
        calls=calls,
        turns=turns(steps),
        turn_cap=own.turn_cap_of(document) if stop else None,
        answered=own.answered(stop, answered(steps, calls)),
        last_step=len(steps) - 1,
        stop=stop,
        verdict=own.verdict_of(outcome, file) if outcome else None,
        faults=own.faults_of(outcome),
    )


def checked_steps(document: object) -> list[dict[str, Any]]:
    """The steps of a trajectory.

    Raises:
        ReadError: they are missing or misshapen.
    """
    steps = mapping(document).get("steps")
    if not is_array(steps) or not steps:
        raise ReadError("wrong shape: steps is not a list with entries")
    for index, step in enumerate(steps):
        if not isinstance(mapping(step).get("source"), str):
            raise ReadError(f"wrong shape: steps[{index}] is not an object with a source")
    return steps


def step_calls(steps: list[dict[str, Any]]) -> Iterator[Call]:
    """Every call in order, with the observation that names it."""
    for index, step in enumerate(steps):
        if step.get("is_copied_context") is True:
            continue
        results = [mapping(r) for r in sequence(mapping(step.get("observation")).get("results"))]
        for position, item in enumerate(sequence(step.get("tool_calls"))):
            yield _call(mapping(item), results, index, f"steps[{index}].tool_calls[{position}]")


def _call(item: dict[str, Any], results: list[dict[str, Any]], index: int, where: str) -> Call:
    name = string(item.get("function_name"))
    if not name:
        raise ReadError(f"wrong shape: {where} has no function_name")
    key = item.get("tool_call_id")
    result = next((r for r in results if r.get("source_call_id") == key), None)
    if result is None:
        return make_call(name, item.get("arguments"), index, None, None)
    extra = mapping(item.get("extra")) | mapping(result.get("extra"))
    return make_call(
        name, item.get("arguments"), index, index, result.get("content"), _flags(extra)
    )


def _flags(extra: dict[str, Any]) -> dict[str, Any]:
    """The typed facts of ``extra``; anything else in it is the producer's business."""
    known = ("is_error", "isError", "tool_result_is_error", "tool_use_is_error", "exit_code", "ok")
    return {key: extra[key] for key in known if key in extra}


def turns(steps: list[dict[str, Any]]) -> int:
    """Steps the agent took."""
    return sum(step["source"] == "agent" for step in steps)


def answered(steps: list[dict[str, Any]], calls: tuple[Call, ...]) -> bool:
    """A submission that was not refused, or a last word without another call."""
    if any(family.is_submit(call.tool) and call.answered and not call.failure for call in calls):
        return True
    last = steps[-1]
    return last["source"] == "agent" and not last.get("tool_calls") and bool(last.get("message"))
