# SPDX-License-Identifier: Apache-2.0
"""What a toolbelt may have beside its tools: an answer, a list of what is to do, a shelf.

Contract: none of them stands in the way of an answer. Tools on a shelf are found and taken by the
model itself; the prompt is never rendered anew for them, so taking one shows how it is called.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from envkit.agent.repair import FINAL_ANSWER
from envkit.agent.toolbelt.local import LocalTool, Refused, Said, carry_out, schema
from envkit.agent.types import CallRequest, Observation, Toolbelt, ToolSpec
from envkit.fault import HarnessError

_TEXT: Final = {"type": "string"}
_STATES: Final = ("pending", "in_progress", "completed", "cancelled")
TODOS: Final[Mapping[str, Any]] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "id": {**_TEXT, "description": "unique in the list"},
            "content": {**_TEXT, "description": "what is to be done"},
            "status": {**_TEXT, "enum": list(_STATES)},
        },
        "required": ["id", "status"],
    },
}


class Extended:
    """A toolbelt and more tools."""

    def __init__(self, base: Toolbelt, extras: Sequence[str]) -> None:
        """``extras`` are of `EXTRAS`.

        Raises:
            HarnessError: there is no such extra, or a tool of its name is there already.
        """
        self._base = base
        self.name = "+".join([base.name, *extras])
        self._shelf: Shelf | None = None
        self._local: dict[str, LocalTool] = {}
        for extra in extras:
            self._add(extra)
        if taken := {tool.name for tool in base.tools} & set(self._local):
            raise HarnessError(f"the servers list {', '.join(sorted(taken))} themselves")

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What may be called now."""
        ours = tuple(tool.spec for tool in self._local.values())
        return (*ours, *(self._base.tools if self._shelf is None else self._shelf.taken()))

    async def call(self, request: CallRequest) -> Observation:
        """Carry out one call; raises what the toolbelt beneath does."""
        if request.name in self._local:
            return await carry_out(self._local[request.name], request)
        return await self._base.call(request)

    async def keep(self, name: str, text: str) -> str:
        """As the toolbelt beneath keeps it."""
        return await self._base.keep(name, text)

    def _add(self, extra: str) -> None:
        if extra not in EXTRAS:
            raise HarnessError(f"no extra {extra!r}; there are {', '.join(EXTRAS)}")
        if extra == "toolbelt":
            self._shelf = Shelf(self._base.tools)
            tools = self._shelf.tools()
        else:
            tools = (final_answer(),) if extra == FINAL_ANSWER else (todo_write(),)
        self._local.update((tool.spec.name, tool) for tool in tools)


EXTRAS: Final = (FINAL_ANSWER, "todo_write", "toolbelt")
"""Names of what may be added."""


def final_answer() -> LocalTool:
    """The answer by a tool, whatever is still to do."""

    async def work(arguments: Mapping[str, Any]) -> Said:
        answer = str(arguments["answer"])
        return Said(text=answer, final=answer)

    states = ["completed", "blocked", "failed"]
    parameters = schema(
        "answer",
        answer={**_TEXT, "description": "the whole answer to the task"},
        status={**_TEXT, "enum": states, "description": "how far it came"},
    )
    about = "Give your final answer. This ends the task."
    spec = ToolSpec(name=FINAL_ANSWER, description=about, parameters=parameters)
    return LocalTool(spec=spec, work=work)


@dataclass(slots=True)
class Todos:
    """What is to do, as the model says."""

    entries: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    async def write(self, arguments: Mapping[str, Any]) -> Said:
        """Replace the list, or with ``merge`` change entries of it by their ids."""
        told: list[dict[str, str]] = [dict(each) for each in arguments["todos"]]
        before = dict(self.entries)
        if not arguments.get("merge", False):
            self.entries = {}
        for each in told:
            old = self.entries.get(each["id"], {})
            if "content" not in {**old, **each}:
                raise self._restored(before, each["id"])
            self.entries[each["id"]] = {**old, **each}
        return Said(text=json.dumps({"todos": [*self.entries.values()]}, ensure_ascii=False))

    def _restored(self, before: dict[str, dict[str, str]], todo: str) -> Refused:
        self.entries = before
        return Refused("missing_content", f"todo {todo!r} is new and has no content; say what")


def todo_write() -> LocalTool:
    """A list of what is to do."""
    parameters = schema(
        "todos",
        todos=TODOS,
        merge={"type": "boolean", "description": "change entries by id; false replaces the list"},
    )
    about = "Keep a list of what is to be done in a long task."
    spec = ToolSpec(name="todo_write", description=about, parameters=parameters)
    return LocalTool(spec=spec, work=Todos().write)


class Shelf:
    """Tools that are there, and those of them that were taken."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._all = {tool.name: tool for tool in tools}
        self._taken: dict[str, ToolSpec] = {}

    def taken(self) -> tuple[ToolSpec, ...]:
        """What may be called."""
        return tuple(self._taken.values())

    def tools(self) -> tuple[LocalTool, ...]:
        """By which tools are found, taken and put back."""
        named = schema("tool_name", tool_name={**_TEXT, "description": "of toolbelt_list_tools"})
        return (
            _shelved("list_tools", "List the tools that can be added.", schema(), self._list),
            _shelved("inspect_tool", "Show how a tool is called.", named, self._inspect),
            _shelved("add_tool", "Add a tool, so that it can be called.", named, self._add),
            _shelved("remove_tool", "Take a tool away again.", named, self._remove),
        )

    async def _list(self, _arguments: Mapping[str, Any]) -> Said:
        return Said(text=json.dumps(sorted(self._all)))

    async def _inspect(self, arguments: Mapping[str, Any]) -> Said:
        return Said(text=_described(self._find(arguments)))

    async def _add(self, arguments: Mapping[str, Any]) -> Said:
        tool = self._find(arguments)
        self._taken[tool.name] = tool
        return Said(text=f"Added; {len(self._taken)} can be called.\n{_described(tool)}")

    async def _remove(self, arguments: Mapping[str, Any]) -> Said:
        tool = self._find(arguments)
        if self._taken.pop(tool.name, None) is None:
            raise Refused("not_added", f"{tool.name} was not added")
        return Said(text=f"Removed; {len(self._taken)} can be called.")

    def _find(self, arguments: Mapping[str, Any]) -> ToolSpec:
        name = str(arguments["tool_name"])
        if name not in self._all:
            raise Refused("unknown_tool", f"there is no tool {name!r}; see toolbelt_list_tools")
        return self._all[name]


def _shelved(name: str, about: str, parameters: dict[str, Any], work: Any) -> LocalTool:
    spec = ToolSpec(name=f"toolbelt_{name}", description=about, parameters=parameters)
    return LocalTool(spec=spec, work=work)


def _described(tool: ToolSpec) -> str:
    return json.dumps(tool.to_openai()["function"], ensure_ascii=False)
