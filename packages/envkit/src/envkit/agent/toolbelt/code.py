# SPDX-License-Identifier: Apache-2.0
"""The toolbelt ``code``: commands and files in the agent's box, as coding agents have them.

Contract: there is no server; each tool is a command in the box, with the box's limits and the
model's rights. A command that outlives its limit, or runs out of memory, is the model's own. Paths
that do not begin with ``/`` are below the directory in which every command begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from envkit.agent.toolbelt import scripts
from envkit.agent.toolbelt.box import FILE_S, KEPT, Box, Ran
from envkit.agent.toolbelt.extras import TODOS
from envkit.agent.toolbelt.local import (
    LocalTool,
    Refused,
    Said,
    carry_out,
    schema,
    unknown_tool,
)
from envkit.agent.types import CallRequest, Observation, ToolSpec

COMMAND_S: Final = 120
COMMAND_MOST_S: Final = 600
"""Seconds of a command of the model's: what it gets, and what it may ask for."""
COMMAND_BYTES: Final = 100_000
"""Of one command: what the kernel takes as one argument is 128 KiB."""
LINES: Final = 2000

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 1}
_PATH: Final = {**_TEXT, "description": "absolute, or below the directory of the task"}


class CodeToolbelt:
    """Of one trial."""

    name = "code"

    def __init__(self, box: Box, directory: str = "/filesystem") -> None:
        """``directory`` is where commands begin; where it is missing they begin in ``/``."""
        self._box = box
        self._begin = scripts.begin_in(directory)
        self._tools = {tool.spec.name: tool for tool in self._made()}

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The seven."""
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, request: CallRequest) -> Observation:
        """Carry out one call; raises what the environment does."""
        if request.name not in self._tools:
            return unknown_tool(request, self._tools)
        return await carry_out(self._tools[request.name], request)

    async def keep(self, name: str, text: str) -> str:
        """Leave it in the box."""
        path = f"{KEPT}/{name}"
        await self._box.put(path, text.encode("utf-8", "replace"))
        return path

    def _made(self) -> tuple[LocalTool, ...]:
        return (
            _tool(
                "bash",
                "Run a command of bash. Each begins anew in the directory of the task.",
                schema(
                    "command",
                    command=_TEXT,
                    timeout={**_COUNT, "maximum": COMMAND_MOST_S, "description": "in seconds"},
                    description={**_TEXT, "description": "what it is for, in a few words"},
                ),
                self._bash,
            ),
            _tool(
                "glob",
                "List files by a pattern such as **/*.csv.",
                schema("pattern", pattern=_TEXT, path=_PATH),
                self._glob,
            ),
            _tool(
                "read",
                f"Read a text file with numbered lines, {LINES} at most, or list a directory.",
                schema("filePath", filePath=_PATH, offset=_COUNT, limit=_COUNT),
                self._read,
            ),
            _tool(
                "grep",
                "Search files for an extended regular expression.",
                schema(
                    "pattern",
                    pattern=_TEXT,
                    path=_PATH,
                    include={**_TEXT, "description": "only files named so, such as *.py"},
                ),
                self._grep,
            ),
            _tool(
                "write",
                "Write a file, in place of what is there.",
                schema("filePath", "content", filePath=_PATH, content=_TEXT),
                self._write,
            ),
            _tool(
                "edit",
                "Replace a text in a file. It must occur once, or replaceAll be true.",
                schema(
                    *("filePath", "oldString", "newString"),
                    filePath=_PATH,
                    oldString=_TEXT,
                    newString=_TEXT,
                    replaceAll={"type": "boolean"},
                ),
                self._edit,
            ),
            _tool(
                "todowrite",
                "Keep a list of what is to be done in a long task; it replaces the last one.",
                schema("todos", todos=TODOS),
                self._todowrite,
            ),
        )

    async def _bash(self, arguments: Mapping[str, Any]) -> Said:
        command = _sound("command", arguments["command"])
        seconds = _count(arguments, "timeout", COMMAND_S, COMMAND_MOST_S)
        ran = await self._box.run(f"{self._begin}\n{command}", seconds)
        if ran.timed_out:
            raise _timed_out(ran, seconds)
        if ran.status:
            return Said(text=f"{ran.output}\n[exit status {ran.status}]", code="exit_nonzero")
        return Said(text=ran.output)

    async def _glob(self, arguments: Mapping[str, Any]) -> Said:
        pattern = _sound("pattern", arguments["pattern"])
        ran = await self._script(scripts.GLOB, _place(arguments), pattern)
        return Said(text=ran.output or "no file matches", code="" if ran.output else "no_match")

    async def _grep(self, arguments: Mapping[str, Any]) -> Said:
        pattern = _sound("pattern", arguments["pattern"])
        include = _sound("include", arguments.get("include", "*"))
        ran = await self._script(scripts.GREP, _place(arguments), pattern, include)
        return Said(text=ran.output or "nothing matches", code="" if ran.output else "no_match")

    async def _read(self, arguments: Mapping[str, Any]) -> Said:
        path, first = _sound("filePath", arguments["filePath"]), _count(arguments, "offset", 1)
        limit = _count(arguments, "limit", LINES, LINES)
        ran = await self._script(scripts.READ, path, str(first), str(limit))
        if ran.status == scripts.IS_DIRECTORY:
            return Said(text=ran.output or "the directory is empty", code="directory")
        if "\0" in ran.output:
            raise Refused("binary", f"{path} is no text; look at it with bash")
        lines = ran.output.removesuffix("\n").split("\n") if ran.output else []
        text = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))
        more = f"\n[go on with offset {first + limit}]" if len(lines) == limit else ""
        return Said(text=f"{text}{more}" or "no line there", code="" if lines else "empty")

    async def _write(self, arguments: Mapping[str, Any]) -> Said:
        path, content = _sound("filePath", arguments["filePath"]), str(arguments["content"])
        data = content.encode("utf-8", "replace")
        await self._leave(path, data)
        return Said(text=f"wrote {len(data)} bytes to {path}")

    async def _edit(self, arguments: Mapping[str, Any]) -> Said:
        path = _sound("filePath", arguments["filePath"])
        old, new = str(arguments["oldString"]), str(arguments["newString"])
        text = scripts.decoded(path, (await self._script(scripts.FETCH, path)).output)
        found = text.count(old) if old else 0
        if not found:
            raise Refused("not_found", f"oldString does not occur in {path}; read the file again")
        if found > 1 and not arguments.get("replaceAll", False):
            raise Refused("ambiguous", f"oldString occurs {found} times in {path}; say more of it")
        await self._leave(path, text.replace(old, new).encode("utf-8", "replace"))
        return Said(text=f"replaced {found} of {path}")

    async def _todowrite(self, arguments: Mapping[str, Any]) -> Said:
        return Said(text=json.dumps(arguments["todos"], ensure_ascii=False))

    async def _leave(self, path: str, data: bytes) -> None:
        """Through a file beside it: the model's rights decide whether the path may be written."""
        carried = self._box.unused()
        await self._box.put(carried, data)
        await self._script(scripts.LEAVE, path, carried)

    async def _script(self, script: str, *arguments: str) -> Ran:
        ran = await self._box.script(f"{self._begin}\n{script}", *arguments, timeout_s=FILE_S)
        if ran.timed_out:
            raise _timed_out(ran, FILE_S)
        if ran.status not in (0, scripts.IS_DIRECTORY):
            raise Refused("failed", ran.output.strip() or f"it ended with status {ran.status}")
        return ran


def _tool(name: str, about: str, parameters: dict[str, Any], work: Any) -> LocalTool:
    spec = ToolSpec(name=name, description=about, parameters=parameters)
    return LocalTool(spec=spec, work=work)


def _place(arguments: Mapping[str, Any]) -> str:
    return _sound("path", arguments.get("path", "."))


def _count(arguments: Mapping[str, Any], name: str, usual: int, most: int = 0) -> int:
    """A number from 1; more than the ``most`` there may be is as many, 0 is no bound."""
    value = int(arguments.get(name, usual))
    if value < 1:
        raise Refused("bad_argument", f"{name} is {value}; give 1 or more")
    return min(value, most) if most else value


def _sound(name: str, value: object) -> str:
    """A text that a command can be made of."""
    text = str(value).encode("utf-8", "replace").decode()
    if "\0" in text:
        raise Refused("bad_argument", f"{name} has a NUL character in it")
    if len(text.encode()) > COMMAND_BYTES:
        raise Refused("too_long", f"{name} is longer than {COMMAND_BYTES} bytes; write a file")
    return text


def _timed_out(ran: Ran, seconds: int) -> Refused:
    said = f"; its output until then:\n{ran.output}" if ran.output else "; it said nothing"
    return Refused("timed_out", f"it was killed after {seconds} s{said}")
