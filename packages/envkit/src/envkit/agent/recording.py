# SPDX-License-Identifier: Apache-2.0
"""Recorded tool calls of a task's oracle: ``solution/calls.jsonl``.

One JSON object a line: ``{"tool": …, "arguments": {…}}``, with ``"expect_error": true`` where the
recorded call failed and ``"think_s": 4.2`` where it is known how long the model took before it, and
at most one ``{"final_answer": "…"}``, last.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from envkit.fault import TaskError


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call to replay."""

    tool: str
    arguments: Mapping[str, object]
    expect_error: bool = False
    think_s: float = 0.0
    """Seconds the model took before this call, where they were recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What the oracle did, in order."""

    calls: tuple[Call, ...]
    final_answer: str | None
    """None where the task's result is a file and not an answer."""

    @property
    def tools(self) -> frozenset[str]:
        """Every tool the replay needs."""
        return frozenset(call.tool for call in self.calls)

    @property
    def has_times(self) -> bool:
        """Whether it says how long the model took."""
        return any(call.think_s for call in self.calls)


def read_recording(path: Path) -> Recording:
    """Read a recording. Raises TaskError naming file, line and what is wrong."""
    calls: list[Call] = []
    answer: str | None = None
    for where, line in _lines(path):
        if answer is not None:
            raise TaskError(f"{where}: nothing may follow the final answer; move it to the end")
        if "final_answer" in line:
            answer = str(line["final_answer"])
        else:
            calls.append(_call(where, line))
    if not calls and answer is None:
        raise TaskError(f"{path}: no call in it; record the oracle's calls, one JSON object a line")
    return Recording(calls=tuple(calls), final_answer=answer)


def _lines(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}:{number}", _object(f"{path}:{number}", line)


def _object(where: str, line: str) -> Mapping[str, object]:
    try:
        value: object = json.loads(line)
    except ValueError as error:
        raise TaskError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise TaskError(f"{where}: one JSON object a line is expected")
    return cast("dict[str, object]", value)


def _call(where: str, line: Mapping[str, object]) -> Call:
    tool, arguments = line.get("tool"), line.get("arguments", {})
    if not isinstance(tool, str) or not tool:
        raise TaskError(f'{where}: no tool named; write "tool": "pdf_server_read_pdf_pages"')
    if not isinstance(arguments, dict):
        raise TaskError(f'{where}: arguments is no object; write "arguments": {{…}}')
    return Call(
        tool=tool,
        arguments=cast("dict[str, object]", arguments),
        expect_error=line.get("expect_error") is True,
        think_s=_seconds(where, line.get("think_s", 0.0)),
    )


def _seconds(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise TaskError(f'{where}: think_s is no number of seconds; write "think_s": 4.2')
    return float(value)
