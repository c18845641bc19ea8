# SPDX-License-Identifier: Apache-2.0
"""Tools with arguments of every kind, and calls of them."""

from typing import Any

from hypothesis import strategies as st

from envkit.agent.types import CallRequest, ToolSpec

LOOK = ToolSpec(
    name="look",
    description="Looks.",
    parameters={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "deep": {"type": "boolean"},
            "nothing": {"type": "null"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "object": {"type": "object"},
            "choice": {"enum": ["one", "two"]},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "ref": {"$ref": "#/$defs/Kind"},
        },
        "$defs": {"Kind": {"type": "string", "enum": ["a", "b"]}},
    },
)
FIND = ToolSpec(
    name="files_find",
    description="Finds.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path"],
    },
)
NOW = ToolSpec(
    name="now", description="Tells the time.", parameters={"type": "object", "properties": {}}
)
TOOLS = (LOOK, FIND, NOW)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "count": st.integers(),
    "share": st.floats(allow_nan=False, allow_infinity=False),
    "deep": st.booleans(),
    "nothing": st.none(),
    "list": st.lists(st.integers(), max_size=3),
    "object": st.dictionaries(texts, values, max_size=3),
    "choice": st.sampled_from(["one", "two"]),
    "maybe": st.none() | st.integers(),
    "ref": st.sampled_from(["a", "b"]),
}


def call(name: str, **arguments: Any) -> CallRequest:
    return CallRequest(name=name, arguments=arguments)


def calls_with(more: st.SearchStrategy[str] = texts) -> st.SearchStrategy[CallRequest]:
    """Any call of any of the tools, its strings drawn from ``more``."""
    look = st.fixed_dictionaries({}, optional={**ARGUMENTS, "text": more})
    find = st.fixed_dictionaries({"path": more}, optional={"limit": st.integers()})
    return st.one_of(
        look.map(lambda arguments: CallRequest(name="look", arguments=arguments)),
        find.map(lambda arguments: CallRequest(name="files_find", arguments=arguments)),
        st.just(CallRequest(name="now", arguments={})),
    )
