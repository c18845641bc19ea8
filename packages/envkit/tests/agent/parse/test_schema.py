# SPDX-License-Identifier: Apache-2.0
"""Values by JSON Schema: said as text, or checked."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.agent.parse import FORMATS, parser_named
from envkit.agent.parse.check import MOST_CHECKS, check
from envkit.agent.parse.format import say
from envkit.agent.parse.schema import Wrong
from envkit.agent.parse.spoken import from_text
from envkit.agent.types import CallRequest, ToolSpec

ROOT = {"$defs": {"N": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}}}
STRING = {"type": "string"}
MAYBE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (STRING, " 5 ", " 5 "),
        (STRING, "null", "null"),
        ({"type": "integer"}, " 5\n", 5),
        ({"type": "integer"}, "5.0", 5.0),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "5e-1", 0.5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "null"}, "None", None),
        ({"type": "array"}, '["a"]', ["a"]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": ["integer", "string"]}, "5", 5),
        ({"type": ["integer", "string"]}, "5 apples", "5 apples"),
        ({"type": ["integer", "string"]}, "true", "true"),
        (MAYBE, "null", None),
        (MAYBE, '"quoted"', '"quoted"'),
        (MAYBE, "[1]", "[1]"),
        ({"enum": ["a", "b"]}, "\na ", "a"),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": "x"}, "x", "x"),
        ({"$ref": "#/$defs/N"}, "7", 7),
        ({"$ref": "#/$defs/Loop"}, "7", "7"),
        ({"$ref": "#/nowhere"}, "7", "7"),
        ({"allOf": [{"$ref": "#/$defs/N"}]}, "7", 7),
        ({}, "7", "7"),
        (None, '{"a": 1}', {"a": 1}),
        (True, "[1", "[1"),
    ],
)
def test_text_is_given_the_type_that_is_allowed(schema: Any, text: str, value: Any) -> None:
    found = from_text(text, schema, ROOT)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("integer", each) for each in ("", "5.5", "five", "true", "[5]", "5 6", "null")),
        *(("number", each) for each in ("NaN", "Infinity", "1e999", "0x5", "1_000")),
        *(("boolean", each) for each in ("1", "yes", "TRUE")),
        *(("array", each) for each in ("a, b", '{"a": 1}', "('a',)")),
        *(("object", each) for each in ("{'a': 1}", "[1]", "{")),
    ],
)
def test_text_that_says_nothing_that_is_allowed_is_wrong(kind: str, text: str) -> None:
    with pytest.raises(Wrong, match=f"must be {kind}, not "):
        from_text(text, {"type": kind}, {})


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "integer"}, True, "must be integer, not boolean true"),
        ({"type": "integer"}, 5.0, ""),
        ({"type": "number"}, 5, ""),
        ({"type": "string"}, None, "must be string, not null null"),
        ({"enum": [1]}, True, r"must be one of \[1\], not true"),
        ({"items": {"type": "string"}}, ["a", 1], r"\[1\] must be string, not integer 1"),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}, r"\.a must be string"),
        ({"required": ["a"]}, {}, "lacks 'a'"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, 'has no "b"'),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, 1, "must be string or null"),
        ({"allOf": [{"type": "integer"}, {"enum": [1]}]}, 2, "must be one of"),
        ({"minimum": 5}, 1, ""),
        ({"$ref": "#/$defs/N"}, "x", "must be integer"),
    ],
)
def test_values_are_checked(schema: Any, value: Any, problem: str) -> None:
    if not problem:
        check(value, schema, ROOT)
        return
    with pytest.raises(Wrong, match=problem):
        check(value, schema, ROOT)


def test_a_schema_that_chooses_among_itself_is_given_up() -> None:
    root = {"$defs": {"Self": {"anyOf": [{"$ref": "#/$defs/Self"}]}}}
    check("x", root["$defs"]["Self"], root)


def test_a_schema_that_doubles_at_every_level_is_given_up() -> None:
    node = {"type": "object", "required": ["more"], "properties": {"in": {"$ref": "#/$defs/Node"}}}
    root = {"$defs": {"Node": {"anyOf": [node, {**node, "required": ["most"]}]}}}
    value: Any = {}
    for _ in range(60):
        value = {"in": value, "more": 1, "most": 1}
    assert MOST_CHECKS < 2**60
    check(value, root["$defs"]["Node"], root)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from("ab1"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "enum",
                    "anyOf",
                    "oneOf",
                    "allOf",
                    "$ref",
                    "items",
                    "properties",
                    "required",
                    "const",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(schema=junk, value=junk, text=st.text(max_size=10))
def test_schemas_of_others_may_be_anything(schema: Any, value: Any, text: str) -> None:
    root = schema if isinstance(schema, dict) else {}
    with suppress(Wrong):
        check(value, schema, root)
    with suppress(Wrong):
        from_text(text, schema, root)
    tool = ToolSpec(name="x", description="", parameters={**root, "properties": {"a": schema}})
    for name in FORMATS:
        said = say(name, [CallRequest(name="x", arguments={"a": value})])
        parsed = parser_named(name).parse(said, [tool])
        assert len(parsed.calls) + len(parsed.unreadable) == 1
