# SPDX-License-Identifier: Apache-2.0
"""The recorded tool calls of a task's oracle, `solution/calls.jsonl`.

A line is `{"tool": NAME, "arguments": {...}}`, with `"expect_error": true` where the recording
failed on purpose and `"think_s": SECONDS` where the model's time before it is known, or
`{"final_answer": TEXT}` as the last one. Tool names carry their server:
`pdf_server_read_pdf_pages`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from envkit.task.files import CALLS
from envkit.task.read import Table, error, one_line
from envkit.task.types import Problem, World

_CALL_KEYS = frozenset({"tool", "arguments", "expect_error", "think_s"})


def check_calls(path: Path, world: World | None) -> Iterator[Problem]:
    """Errors for lines that could not be replayed in the task's world."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as cause:
        yield error("calls-invalid", CALLS, one_line(cause), "save it as UTF-8")
        return
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        yield error("calls-invalid", CALLS, "no call in it", "record the oracle's calls")
    for number, line in numbered:
        is_last = number == numbered[-1][0]
        for message, fix in _check_line(line, world, is_last=is_last):
            yield error("calls-invalid", f"{CALLS}:{number}", message, fix)


def _check_line(line: str, world: World | None, *, is_last: bool) -> Iterator[tuple[str, str]]:
    try:
        value: object = json.loads(line)
    except ValueError as cause:
        yield one_line(cause), "write one JSON object a line"
        return
    if not isinstance(value, dict):
        yield f"an object is expected, found {type(value).__name__}", "write one object a line"
        return
    record = cast(Table, value)
    if "final_answer" in record:
        yield from _check_answer(record, is_last=is_last)
    else:
        yield from _check_call(record, world)


def _check_answer(record: Table, *, is_last: bool) -> Iterator[tuple[str, str]]:
    if len(record) > 1 or not isinstance(record["final_answer"], str):
        yield "final_answer takes one text and stands alone", 'write {"final_answer": "..."}'
    if not is_last:
        yield "a final answer before the last line", "move it to the end"


def _check_call(record: Table, world: World | None) -> Iterator[tuple[str, str]]:
    extra = sorted(set(record) - _CALL_KEYS)
    if extra:
        yield f"unknown keys: {', '.join(extra)}", f"known: {', '.join(sorted(_CALL_KEYS))}"
    if not isinstance(record.get("arguments"), dict):
        yield "arguments is no object", 'write "arguments": {...}'
    if not isinstance(record.get("expect_error", False), bool):
        yield "expect_error is no boolean", 'write "expect_error": true'
    think_s = record.get("think_s", 0.0)
    if isinstance(think_s, bool) or not isinstance(think_s, int | float) or think_s < 0:
        yield "think_s is no number of seconds", 'write "think_s": 4.2'
    tool = record.get("tool")
    if not isinstance(tool, str) or not tool:
        yield "no tool named", 'write "tool": "pdf_server_read_pdf_pages"'
    elif world is not None and not tool.startswith(tuple(f"{name}_" for name in world.servers)):
        yield f"{tool} belongs to no server of the world", f"servers: {', '.join(world.servers)}"
    elif world is not None and world.tools and tool not in world.tools:
        yield f"{tool} is not offered by the world", f"tools: {', '.join(world.tools)}"
