# SPDX-License-Identifier: Apache-2.0
"""Read a run recorded as OpenAI chat messages, with the sidecars that lie beside it.

The document is an object with ``messages`` or the list itself. Sidecars of the Archipelago harness
are used when they are there: ``agent_config.json`` names the turn cap, ``grades.json`` the reward,
``verifiers.json`` says that the run was to be graded.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from envkit.audit import family
from envkit.audit.document import ReadError, load
from envkit.audit.envelope import read_result
from envkit.audit.find import relative
from envkit.audit.shape import integer, is_array, mapping, number, sequence, string
from envkit.audit.types import Call, Run, Verdict

_OPERATION_KEYS = ("action", "operation", "op", "command_name", "method")
_CAPS = ("max_steps", "max_turns", "max_iterations")


def is_messages(document: object) -> bool:
    """Whether a document claims this form."""
    if is_array(document):
        return "role" in mapping(next(iter(document), None))
    return "messages" in mapping(document)


def read_messages(path: Path, root: Path, document: object) -> Run:
    """The run in ``document``.

    Raises:
        ReadError: the messages are not a list of objects with a role.
    """
    messages = _checked(document)
    calls = tuple(_calls(messages))
    data = mapping(document)
    file = relative(path, root)
    return Run(
        id=file.removesuffix("/trajectory.json"),
        file=file,
        task=_task(path, root),
        form="openai",
        calls=calls,
        turns=sum(message["role"] == "assistant" for message in messages),
        turn_cap=_turn_cap(path.parent, root, data),
        answered=_answered(messages, calls, data),
        last_step=len(messages) - 1,
        verdict=_verdict(path.parent, root),
    )


def _checked(document: object) -> list[dict[str, Any]]:
    messages = document if is_array(document) else mapping(document)["messages"]
    if not is_array(messages) or not messages:
        raise ReadError("wrong shape: messages is not a list with entries")
    for index, message in enumerate(messages):
        if not isinstance(mapping(message).get("role"), str):
            raise ReadError(f"wrong shape: messages[{index}] is not an object with a role")
    return messages


def _calls(messages: list[dict[str, Any]]) -> Iterator[Call]:
    results: dict[str, deque[int]] = defaultdict(deque)
    for index, message in enumerate(messages):
        if message["role"] in ("tool", "function"):
            results[string(message.get("tool_call_id")) or string(message.get("name"))].append(
                index
            )
    for index, message in enumerate(messages):
        for position, requested in enumerate(_requested(message)):
            name, arguments, key = _parts(requested, f"messages[{index}].tool_calls[{position}]")
            answers = results.get(key)
            step = answers.popleft() if answers else None
            content = None if step is None else messages[step].get("content")
            yield make_call(name, arguments, index, step, content)


def _requested(message: dict[str, Any]) -> list[Any]:
    if message["role"] != "assistant":
        return []
    legacy = message.get("function_call")
    return sequence(message.get("tool_calls")) or ([{"function": legacy}] if legacy else [])


def _parts(requested: object, where: str) -> tuple[str, object, str]:
    """Name, arguments and the key its result is found by."""
    call = mapping(requested)
    function = mapping(call.get("function")) or call
    name = string(function.get("name"))
    if not name:
        raise ReadError(f"wrong shape: {where} has no function name")
    return name, function.get("arguments"), string(call.get("id")) or name


def make_call(
    tool: str,
    arguments: object,
    message: int,
    step: int | None,
    content: object,
    flags: dict[str, Any] | None = None,
) -> Call:
    """One call of any form; ``flags`` are typed facts that stand beside its result."""
    text, parsed = _arguments(arguments)
    outcome = read_result(content, tool=tool, arguments=parsed, flags=flags or {})
    return Call(
        tool=tool,
        operation=_operation(parsed),
        arguments=text,
        parsed=parsed,
        message=message,
        step=message if step is None else step,
        answered=step is not None,
        text=outcome.text,
        failure=outcome.failure,
    )


def _arguments(arguments: object) -> tuple[str, object]:
    """Recorded text and its value, whichever of the two was recorded."""
    if not isinstance(arguments, str):
        return orjson.dumps(arguments, default=str).decode(), arguments
    try:
        return arguments, orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments, arguments


def _operation(parsed: object) -> str:
    """The action asked of a many-in-one tool, also one level down (``request.action``)."""
    outer = mapping(parsed)
    inner = mapping(next(iter(outer.values()))) if len(outer) == 1 else {}
    for arguments in (outer, inner):
        for key in _OPERATION_KEYS:
            if value := string(arguments.get(key)):
                return value[:80]
    return ""


def _task(path: Path, root: Path) -> str:
    """The same task has the same directory name in every batch of runs."""
    named = path.parent if path.name == "trajectory.json" and path.parent != root else path
    return named.stem if named == path else named.name


def _answered(
    messages: list[dict[str, Any]], calls: tuple[Call, ...], data: dict[str, Any]
) -> bool:
    if any(family.is_submit(call.tool) and call.answered and not call.failure for call in calls):
        return True
    last = messages[-1]
    spoke = last["role"] == "assistant" and not _requested(last) and bool(last.get("content"))
    return spoke or bool(data.get("output"))


def _turn_cap(directory: Path, root: Path, data: dict[str, Any]) -> int | None:
    try:
        config = mapping(load(directory / "agent_config.json", root))
    except ReadError:
        config = {}
    places = (mapping(config.get("agent_config_values")), config, data, mapping(data.get("info")))
    caps = (integer(place.get(key)) for place in places for key in _CAPS)
    return next((cap for cap in caps if cap), None)


def _verdict(directory: Path, root: Path) -> Verdict | None:
    grades = directory / "grades.json"
    if not grades.exists():
        if not (directory / "verifiers.json").exists():
            return None
        return Verdict(source=relative(grades, root), problem="is missing")
    try:
        return _graded(relative(grades, root), mapping(load(grades, root)))
    except ReadError as error:
        return Verdict(source=relative(grades, root), problem=str(error))


def _graded(source: str, grades: dict[str, Any]) -> Verdict:
    status = string(grades.get("grading_run_status"))
    reward = number(mapping(grades.get("scoring_results")).get("final_score"))
    results = [mapping(result) for result in sequence(grades.get("verifier_results"))]
    if reward is None:
        return Verdict(source=source, problem=f"no final score, grading is {status or 'unknown'}")
    failed = [result for result in results if result.get("status") not in (None, "ok")]
    return Verdict(source=source, reward=reward, valid=False if failed else None)
