# SPDX-License-Identifier: Apache-2.0
"""What is said in a format reads back as the same calls; whatever else is said is parsed too."""

import json

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from envkit.agent.parse import FORMATS, parser_named
from envkit.agent.parse.format import say
from envkit.agent.parse.turn import MOST_BROKEN
from envkit.agent.types import CallRequest, Parsed
from envkit.fault import HarnessError

from .tools import NOW, TOOLS, call, calls_with, texts

TAGS = [
    *("<tool_call>", "</tool_call>", "<think>", "</think>", "<function=look>", "</function>"),
    *("<parameter=text>", "</parameter>", "<arg_key>", "</arg_key>", "<arg_value>"),
    *("</arg_value>", "<|python_tag|>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]"),
    *("[/THINK]", "\n", "{", "}", "[", "]", '"', "\\", ";", ",", '{"name": "look", "arguments": '),
    *(
        '{"name": "now"}',
        "look",
        "text",
        '{"name": "now", "parameters": {}}',
        "\\ud800",
        "NaN",
        "1e999",
    ),
]
spiked = st.lists(st.one_of(texts, st.sampled_from(TAGS)), max_size=12).map("".join)
STEADY = settings(deadline=None)


@pytest.mark.parametrize("name", FORMATS)
@STEADY
@given(
    calls=st.lists(calls_with(), max_size=3),
    content=st.sampled_from(["", "Well.", "Then: é\nso"]),
    thinking=st.sampled_from(["", "Hm.", "one\ntwo"]),
    opened=st.booleans(),
)
def test_a_turn_reads_back_as_it_was_said(
    name: str, calls: list[CallRequest], content: str, thinking: str, opened: bool
) -> None:
    said = say(name, calls, content=content, thinking=thinking, opened=opened)
    parsed = parser_named(name, opens_thinking=opened).parse(said, TOOLS)
    assert parsed == Parsed(content=content, thinking=thinking, calls=tuple(calls))


@pytest.mark.parametrize("name", FORMATS)
@STEADY
@given(calls=st.lists(calls_with(spiked), min_size=1, max_size=3))
@example(calls=[call("look", text="\n</parameter>\n")])
@example(calls=[call("look", text="</tool_call>"), call("look", text="<think>")])
@example(calls=[call("look", text="</think>"), call("now")])
def test_arguments_that_look_like_the_format_read_back_or_are_refused(
    name: str, calls: list[CallRequest]
) -> None:
    try:
        said = say(name, calls)
    except HarnessError:
        assume(name in ("hermes", "llama3_json", "mistral"))
        raise
    parsed = parser_named(name).parse(said, TOOLS)
    assert (parsed.calls, parsed.unreadable) == (tuple(calls), ())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("opened", [False, True])
@settings(deadline=None, max_examples=150)
@given(text=spiked)
@example(text='{"name": ["now"]}')
def test_any_text_is_parsed(name: str, opened: bool, text: str) -> None:
    parsed = parser_named(name, opens_thinking=opened).parse(text, TOOLS)
    assert len(parsed.unreadable) <= MOST_BROKEN
    for each in parsed.calls:
        assert each.name in {tool.name for tool in TOOLS}
        json.dumps(dict(each.arguments), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None, max_examples=150)
@given(calls=st.lists(calls_with(), min_size=1, max_size=2), data=st.data())
def test_a_damaged_call_is_read_named_or_visibly_text(
    name: str, calls: list[CallRequest], data: st.DataObject
) -> None:
    said = say(name, calls)
    at = data.draw(st.integers(0, len(said) - 1))
    end = data.draw(st.integers(at, min(at + 8, len(said))))
    damaged = (
        said[:at] + data.draw(st.sampled_from(["", "x", '"', "<", "\n", said[:9]])) + said[end:]
    )
    parsed = parser_named(name).parse(damaged, TOOLS)
    assert parsed.calls or parsed.unreadable or parsed.content or not damaged.strip()


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None, max_examples=100)
@given(calls=st.lists(calls_with(), min_size=1, max_size=2), data=st.data())
def test_a_turn_that_breaks_off_is_never_a_final_answer(
    name: str, calls: list[CallRequest], data: st.DataObject
) -> None:
    said = say(name, calls)
    start = {"llama3_json": len('{"name":'), "mistral": len("[TOOL_CALLS]")}.get(
        name, len("<tool_call>")
    )
    parsed = parser_named(name).parse(said[: data.draw(st.integers(start, len(said) - 1))], TOOLS)
    assert parsed.unreadable or 0 < len(parsed.calls) < len(calls)


def test_a_message_repeats_no_more_than_the_beginning_of_a_number() -> None:
    said = f'<tool_call>{{"name": "look", "arguments": {{"share": {"1" * 9000}.0}}}}</tool_call>'
    (fault,) = parser_named("hermes").parse(said, TOOLS).unreadable
    assert "too large for a number" in fault.message
    assert len(fault.message) < 400


def test_unknown_formats_are_refused() -> None:
    for refused in (lambda: parser_named("gpt"), lambda: say("gpt", [])):
        with pytest.raises(HarnessError, match="no tool-call format 'gpt'; known: hermes"):
            refused()


def test_a_tool_without_arguments_can_be_called(subtests: pytest.Subtests) -> None:
    for name in FORMATS:
        with subtests.test(name):
            assert parser_named(name).parse(say(name, [call("now")]), [NOW]).calls == (call("now"),)
