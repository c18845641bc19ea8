# SPDX-License-Identifier: Apache-2.0
"""Hostile text costs time in proportion to its length, counted in steps and not in seconds."""

import sys
from types import FrameType
from typing import Any

import pytest

from envkit.agent.parse import FORMATS, parser_named
from envkit.agent.parse.reader import Reader

from .tools import TOOLS

ATOMS = {
    "hermes": [
        "<tool_call>",
        "</tool_call>",
        '<tool_call>{"a":',
        '<tool_call>["',
        "<think>",
        "</think>",
    ],
    "qwen3_xml": [
        "<tool_call><function=look><parameter=text>",
        "<tool_call><function=look><parameter=text></parameter>",
        "<tool_call><function=look><parameter=text></parameter></function>",
        "</parameter> x",
        "</parameter>" + " " * 50,
        "<parameter=",
        "<function=",
        "</function>",
    ],
    "glm": [
        "<tool_call>look<arg_key>",
        "<tool_call>look<arg_key>text</arg_key><arg_value>",
        "<arg_key>",
        "</arg_value> x",
        "<tool_call>look",
        "</arg_key>" + " " * 50,
    ],
    "llama3_json": [
        '{"name":',
        '[{"name": "x"}, ',
        "<|python_tag|>",
        '{"name": "x"} ',
        "[ " * 20,
        "{ " * 20,
    ],
    "mistral": [
        "[TOOL_CALLS]",
        "[TOOL_CALLS]x[CALL_ID]",
        "[ARGS]",
        "[TOOL_CALLS][{",
        '[TOOL_CALLS]x[ARGS]{"a',
        "[THINK]",
    ],
}
SHARED = ["<think>", "</think>", "[", "{", '"', '{"a":', " ", "\n", "<", '{"name": "look"} ']
CASES = [(name, atom) for name in FORMATS for atom in ATOMS[name] + SHARED]


def steps(name: str, text: str) -> int:
    """Characters passed over, and lines of our own code executed."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if "agent/parse" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return trace

    reader = Reader(text)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        parser_named(name).read(reader, TOOLS)
    finally:
        sys.settrace(before)
    return reader.scanned + lines


@pytest.mark.parametrize(("name", "atom"), CASES)
def test_four_times_the_text_takes_about_four_times_the_steps(name: str, atom: str) -> None:
    for tail in ("", "</tool_call>", "</parameter></function>", '"}]', "</arg_value>"):
        short, long = (steps(name, atom * count + tail) for count in (200, 800))
        assert long <= 4.6 * short + 2000, tail


@pytest.mark.parametrize("name", FORMATS)
def test_pairs_of_hostile_parts(name: str) -> None:
    parts = ATOMS[name] + SHARED[:5]
    for one in parts:
        for other in parts:
            text = one * 40 + other * 40
            assert steps(name, text * 2) <= 2.6 * steps(name, text) + 3000, (one, other)
            text = (one + other) * 40
            assert steps(name, text * 2) <= 2.6 * steps(name, text) + 3000, (one, other)


def test_the_measure_sees_a_search_that_starts_again_each_time() -> None:
    def wasteful(count: int) -> int:
        reader = Reader("<tool_call>" * count)
        for at in range(0, len(reader.text), 11):
            reader.search(
                str(at), at, lambda start: reader._passed(start, reader.text.find("x", start))
            )
        return reader.scanned

    assert wasteful(800) > 10 * wasteful(200)
