# SPDX-License-Identifier: Apache-2.0
"""What holds for every tool: its schema, its success, its failure, the forms it takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.servers import catalog
from envkit.servers.arguments import input_schema
from envkit.servers.config import SERVERS, GatewayConfig
from envkit.servers.contract import OUTPUT_SCHEMA, ToolFault, failure
from envkit.servers.desk import Desk
from envkit.servers.tool import Effect, full_name

from .conftest import Start, call, connected, text_of

TOOLS = {full_name(tool): tool for tool in catalog.ALL}
FS, CODE, PDF = (f"{server}_" for server in SERVERS)

SUCCESSES: dict[str, tuple[dict[str, Any], str]] = {
    FS + "list_files": ({"path": "/"}, "'notes.txt' (text/plain file) "),
    FS + "get_directory_tree": ({}, "├── reports/"),
    FS + "get_file_metadata": ({"file_path": "/notes.txt"}, "Type: file"),
    FS + "read_text_file": ({"file_path": "/notes.txt"}, "31 percent"),
    FS + "read_image_file": ({"file_path": "/picture.png"}, "40 x 30 pixels"),
    FS + "search_files": ({"pattern": "*.md"}, "/reports/2025/summary.md"),
    FS + "grep_files": ({"query": "freight margin"}, "/book.xlsx: Rates!B2: freight margin"),
    FS + "write_file": ({"file_path": "/new/a.txt", "content": "x"}, "Created /new/a.txt"),
    FS + "create_folder": ({"path": "/new/b"}, "Created /new/b"),
    FS + "copy_file": (
        {"source_path": "/notes.txt", "destination_path": "/copy.txt"},
        "Copied /notes.txt to /copy.txt",
    ),
    FS + "move_file": (
        {"source_path": "/notes.txt", "destination_path": "/moved.txt"},
        "Moved /notes.txt to /moved.txt",
    ),
    CODE + "code_exec": ({"code": "echo $((6 * 7))"}, "42"),
    PDF + "read_pdf_pages": ({"file_path": "/table.pdf"}, "| Licences |  | 880.1 |"),
    PDF + "search_pdf": ({"file_path": "/table.pdf", "query": "Cloud 1,204.5"}, "[Page 1]"),
    PDF + "read_page_as_image": (
        {"file_path": "/table.pdf", "page_number": 1},
        "Rendered page 1 of 1",
    ),
    PDF + "get_pdf_info": ({"file_path": "/table.pdf"}, "Pages: 1"),
}
FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    FS + "list_files": ({"path": "/none"}, "not_found", "path"),
    FS + "get_directory_tree": ({"path": "/notes.txt"}, "not_a_folder", "path"),
    FS + "get_file_metadata": ({"file_path": "/../etc/passwd"}, "path_outside_root", "file_path"),
    FS + "read_text_file": ({"file_path": "/table.pdf"}, "not_text", "file_path"),
    FS + "read_image_file": ({"file_path": "/notes.txt"}, "not_an_image", "file_path"),
    FS + "search_files": ({"pattern": "*", "path": "/none"}, "not_found", "path"),
    FS + "grep_files": ({"query": "(", "regex": True}, "invalid_argument", "query"),
    FS + "write_file": ({"file_path": "/notes.txt", "content": "x"}, "already_exists", "file_path"),
    FS + "create_folder": ({"path": "/notes.txt/x"}, "not_a_folder", "path"),
    FS + "copy_file": (
        {"source_path": "/none", "destination_path": "/x"},
        "not_found",
        "source_path",
    ),
    FS + "move_file": (
        {"source_path": "/notes.txt", "destination_path": "/../x"},
        "path_outside_root",
        "destination_path",
    ),
    CODE + "code_exec": ({"code": "sleep 30", "timeout_s": 0.2}, "command_timed_out", ""),
    PDF + "read_pdf_pages": (
        {"file_path": "/table.pdf", "pages": [1, 7]},
        "page_out_of_range",
        "pages",
    ),
    PDF + "search_pdf": ({"file_path": "/scan.pdf", "query": "x"}, "scanned", "file_path"),
    PDF + "read_page_as_image": (
        {"file_path": "/table.pdf", "page_number": 0},
        "page_out_of_range",
        "page_number",
    ),
    PDF + "get_pdf_info": ({"file_path": "/broken.pdf"}, "pdf_corrupt", "file_path"),
}


def _nodes(value: Any) -> Iterator[Any]:
    yield value
    children = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple):
        for child in children:
            yield from _nodes(child)


def test_every_tool_is_in_both_tables() -> None:
    assert set(SUCCESSES) == set(TOOLS)
    assert set(FAILURES) == set(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_the_advertised_schema_is_flat_and_explained(name: str) -> None:
    schema = input_schema(TOOLS[name].arguments)
    jsonschema.Draft202012Validator.check_schema(schema)
    for node in _nodes(schema):
        assert node is not None
        if isinstance(node, dict):
            assert not {"$ref", "$defs", "nullable", "title", "allOf"} & set(node)
            assert node.get("type") != "null"
    for argument, described in schema["properties"].items():
        assert described.get("description"), f"{name}.{argument} has no description"
        assert "type" in described or "anyOf" in described
    assert schema["additionalProperties"] is False


def test_the_output_schema_knows_no_null() -> None:
    jsonschema.Draft202012Validator.check_schema(OUTPUT_SCHEMA)
    assert not any(node == "null" or node is None for node in _nodes(OUTPUT_SCHEMA))
    assert "nullable" not in json.dumps(OUTPUT_SCHEMA)


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_succeeds_over_the_wire(start: Start, root, mode: str) -> None:
    async def use():
        async with connected(start(), mode=mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(listed) == list(TOOLS)
            results = {}
            for name, (arguments, _) in SUCCESSES.items():
                results[name] = await client.call_tool(name, arguments)
            return listed, results

    listed, results = asyncio.run(use())
    for name, (_, expected) in SUCCESSES.items():
        result = results[name]
        assert not result.is_error, (name, text_of(result))
        assert expected in text_of(result), name
        jsonschema.validate(result.structured_content, listed[name].output_schema)
        assert not any(node is None for node in _nodes(result.structured_content)), name
        assert result.structured_content["ok"] is True
        assert listed[name].annotations.read_only_hint == (TOOLS[name].effect == Effect.READ)
    assert (root / "new" / "a.txt").read_text() == "x"
    assert (root / "new" / "b").is_dir()
    assert (root / "copy.txt").exists()
    assert (root / "moved.txt").exists()
    assert not (root / "notes.txt").exists()


@pytest.mark.integration
def test_every_tool_fails_in_the_same_way(start: Start, root) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    async def use():
        async with connected(start()) as client:
            return {
                name: await client.call_tool(name, arguments)
                for name, (arguments, _, _) in FAILURES.items()
            }

    results = asyncio.run(use())
    for name, (_, code, field) in FAILURES.items():
        result = results[name]
        assert result.is_error, name
        envelope = result.structured_content
        assert (envelope["ok"], envelope["code"], envelope["field"]) == (False, code, field), name
        first = result.content[0].text
        assert first.startswith(f"{code}: "), name
        assert len(first) < 500, name
        jsonschema.validate(envelope, OUTPUT_SCHEMA)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.parametrize("name", TOOLS)
def test_an_unknown_argument_is_named_and_nothing_runs(desk: Desk, root, name: str) -> None:
    arguments, _ = SUCCESSES[name]
    near = next(iter(input_schema(TOOLS[name].arguments)["properties"]))
    reply = call(desk, name, {**arguments, near + "s": 1})
    assert reply.envelope["code"] == "unknown_argument"
    assert f"Did you mean `{near}`" in reply.texts[0]
    assert not (root / "new").exists()


@pytest.mark.parametrize(
    "form",
    [
        lambda flat: flat,
        lambda flat: {"input": flat},
        lambda flat: {"request": flat},
        lambda flat: {"request": json.dumps(flat)},
        lambda flat: {"input": {"request": flat}},
        lambda flat: {**flat, "pages": json.dumps(flat["pages"])},
        lambda flat: {**flat, "max_chars": str(flat["max_chars"])},
        lambda flat: {**flat, "password": None},
    ],
)
def test_every_form_of_arguments_is_taken(desk: Desk, form) -> None:
    flat = {"file_path": "/table.pdf", "pages": [1], "max_chars": 1000}
    expected = call(desk, PDF + "read_pdf_pages", flat)
    assert not expected.is_error
    assert call(desk, PDF + "read_pdf_pages", form(flat)) == expected


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        ({}, "missing_argument", "file_path"),
        (None, "missing_argument", "file_path"),
        ({"input": 3}, "invalid_argument", "input"),
        ({"file_path": 3}, "invalid_argument", "file_path"),
        ({"file_path": "/table.pdf", "pages": "one"}, "invalid_argument", "pages"),
        ({"file_path": "/table.pdf", "pages": [1, "x"]}, "invalid_argument", "pages.1"),
        ({"file_path": "/table.pdf", "max_chars": 1}, "invalid_argument", "max_chars"),
        ({"file_path": "", "pages": []}, "invalid_path", "file_path"),
        ({"file_path": "/a\0b"}, "invalid_path", "file_path"),
        ({"file_path": "/" + "x" * 100_000}, "invalid_path", "file_path"),
        ({"x" * 100_000: 1}, "unknown_argument", "x" * 80),
    ],
)
def test_wrong_arguments_are_named_in_few_words(desk: Desk, arguments, code, field) -> None:
    reply = call(desk, PDF + "read_pdf_pages", arguments)
    assert (reply.envelope["code"], reply.envelope["field"]) == (code, field)
    assert len(reply.texts[0]) < 500


def test_an_unknown_tool_is_answered_with_near_names(desk: Desk) -> None:
    reply = call(desk, "pdf_server_read_pages", {})
    assert reply.envelope["code"] == "unknown_tool"
    assert "pdf_server_read_pdf_pages" in reply.texts[0]


@given(st.text(max_size=3000), st.text(max_size=3000), st.text(max_size=300))
def test_no_error_reaches_five_hundred_characters(message: str, fix: str, code: str) -> None:
    reply = failure(ToolFault(code, message, fix=fix))
    assert len(reply.texts[0]) < 500
    assert reply.is_error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
READING = sorted(name for name, tool in TOOLS.items() if tool.effect == Effect.READ)


@pytest.mark.integration
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(READING), st.data())
def test_any_arguments_get_an_envelope(shared: Desk, name: str, data: st.DataObject) -> None:
    """Values of any type for the real names: an answer in the envelope, never a crash."""
    names = list(input_schema(TOOLS[name].arguments)["properties"])
    path = st.sampled_from(["/", "/table.pdf", "/notes.txt", "/..", "/reports"])
    arguments = data.draw(st.dictionaries(st.sampled_from(names), JSON | path))
    reply = call(shared, name, arguments)
    jsonschema.validate(dict(reply.envelope), OUTPUT_SCHEMA)
    assert reply.envelope["code"] != "internal_error", reply.texts
    assert all(reply.texts)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, made) -> Iterator[Desk]:
    from envkit.servers.command import LocalRunner

    apps = tmp_path_factory.mktemp("apps")
    desk = Desk(GatewayConfig(root=made, apps_data=apps, command_root=str(made)), LocalRunner())
    yield desk
    desk.close()
