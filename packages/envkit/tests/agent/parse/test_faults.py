# SPDX-License-Identifier: Apache-2.0
"""Calls that cannot be read: each is named, told how to say it right, and costs no other."""

import pytest

from envkit.agent.parse import FORMATS, cut_off, parser_named
from envkit.agent.parse.format import say
from envkit.agent.parse.turn import MOST_BROKEN
from envkit.agent.types import Parsed

from .tools import TOOLS, call

H, X, G, L, M = "hermes", "qwen3_xml", "glm", "llama3_json", "mistral"


def parse(name: str, text: str) -> Parsed:
    return parser_named(name).parse(text, TOOLS)


def xml(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


BROKEN = [
    (H, "<tool_call>\n{", "unclosed", "is not closed by </tool_call>"),
    (H, '<tool_call>\n{"name": "now", "arguments": {}}', "unclosed", "is not closed"),
    (H, "<tool_call>\nnow()\n</tool_call>", "malformed", "no JSON after <tool_call>"),
    (
        H,
        '<tool_call>{"name": "now"} x</tool_call>',
        "malformed",
        "something else than </tool_call>",
    ),
    (H, "<tool_call>[1]</tool_call>", "malformed", "is an array, not an object"),
    (H, '<tool_call>{"name": 1}</tool_call>', "malformed", 'no string "name"'),
    (
        H,
        '<tool_call>{"name": "now", "arguments": "{}"}</tool_call>',
        "malformed",
        "are a string, not",
    ),
    (H, '<tool_call>{"name": "look", "arguments": {"share": NaN}}</tool_call>', "malformed", "NaN"),
    (
        H,
        '<tool_call>{"name": "look", "arguments": {"share": 1e999}}</tool_call>',
        "malformed",
        "large",
    ),
    (
        H,
        '<tool_call>{"name": "look", "arguments": {"text": "\\ud800"}}</tool_call>',
        "malformed",
        "half",
    ),
    (H, f"<tool_call>{'[' * 5000}</tool_call>", "malformed", "no JSON"),
    (H, f"<tool_call>{'[' * 200}{']' * 200}</tool_call>", "malformed", "deeper than 100"),
    (
        H,
        f'<tool_call>{{"name": "look", "arguments": {{"count": {"9" * 5000}}}}}</tool_call>',
        "malformed",
        "digits",
    ),
    (
        H,
        '{"name": "now", "arguments": {}}\n</tool_call>',
        "malformed",
        "</tool_call> without <tool_call>",
    ),
    (H, 'So:\n```json\n{"name": "now", "arguments": {}}\n```', "malformed", "bare JSON"),
    (H, '{"name": "now"}', "malformed", "bare JSON"),
    (X, '{"name": "now"}', "malformed", "bare JSON"),
    (X, "<function=now>\n</function>", "malformed", "<function= without <tool_call>"),
    (X, xml('{"name": "now"}'), "malformed", '<function=NAME> is missing, there is \'{"name"'),
    (X, xml("<function=now>"), "malformed", "</function> is missing"),
    (X, "<tool_call>\n<function=now>\n</function>", "unclosed", "</tool_call> is missing"),
    (
        X,
        xml("<function=look>\n<parameter=text>\na\n</function>"),
        "unclosed",
        "<parameter=text> is not",
    ),
    (
        X,
        xml("<function=look>\n<parameter=text\na\n</parameter></function>"),
        "malformed",
        "<parameter=NAME>",
    ),
    (
        X,
        "<tool_call>\n<function=look>\n<parameter=text>\na",
        "unclosed",
        "<parameter=text> is not closed",
    ),
    (X, "<tool_call>", "unclosed", "<function=NAME> is missing"),
    (G, "<tool_call>now", "unclosed", "is not closed by </tool_call>"),
    (G, "<tool_call></tool_call>", "malformed", "no name of a tool"),
    (G, '<tool_call>{"name": "now"}</tool_call>', "malformed", "no name of a tool"),
    (G, "<arg_key>text</arg_key>", "malformed", "<arg_key> without <tool_call>"),
    (
        G,
        "<tool_call>look<arg_key>text<arg_value>a</arg_value></tool_call>",
        "malformed",
        "without </arg_key>",
    ),
    (
        G,
        "<tool_call>look<arg_key>text</arg_key><arg_value>a</tool_call>",
        "unclosed",
        "'text' is not closed",
    ),
    (G, "<tool_call>look<arg_key>text</arg_key><arg_value>a</arg_value>", "unclosed", "not closed"),
    (L, '{"name": "now", "parameters": ', "malformed", "no JSON"),
    (L, "<|python_tag|>look.call(1)", "malformed", "no JSON"),
    (L, "<|python_tag|>", "malformed", "no JSON"),
    (L, "<|python_tag|>[]", "malformed", "an empty list"),
    (L, '<|python_tag|>{"a": 1}', "malformed", 'no string "name"'),
    (L, '{"name": "now"}', "malformed", "bare JSON"),
    (L, 'I shall: {"name": "now", "parameters": {]}', "malformed", "no JSON"),
    (M, "[TOOL_CALLS]", "malformed", "neither a list nor a name"),
    (M, "[TOOL_CALLS][]", "malformed", "an empty list"),
    (M, "[TOOL_CALLS][1]", "malformed", "is an integer, not an object"),
    (M, '[TOOL_CALLS][{"name": "now"}', "malformed", "the list of calls is no JSON"),
    (M, "[TOOL_CALLS]now[ARGS]", "malformed", "is called with is no JSON"),
    (M, "[TOOL_CALLS]now[ARGS][1]", "malformed", "are an array, not an object"),
    (M, "[TOOL_CALLS]now[CALL_ID]abc", "malformed", "no JSON"),
    (M, "[TOOL_CALLS]{}", "malformed", "neither a list nor a name"),
    (M, "now[ARGS]{}", "malformed", "[ARGS] without [TOOL_CALLS]"),
]


@pytest.mark.parametrize(("name", "text", "code", "said"), BROKEN)
def test_a_broken_call_is_named_and_shown_how(name: str, text: str, code: str, said: str) -> None:
    parsed = parse(name, text)
    assert parsed.calls == ()
    (fault,) = parsed.unreadable[:1]
    assert (fault.code, said in fault.message) == (code, True), fault
    assert FORMATS[name].example in fault.message


@pytest.mark.parametrize(("name", "text", "code", "said"), BROKEN)
def test_what_comes_after_a_broken_call_is_read(name: str, text: str, code: str, said: str) -> None:
    """Where the broken one has an end that can be seen."""
    good = say(name, [call("files_find", path="/a"), call("now")])
    calls = parse(name, f"{text}\n{good}").calls
    endless = name == L or text in ("<tool_call>", "<|python_tag|>") or "bare" in said
    assert calls == (call("files_find", path="/a"), call("now")) or endless


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("bad", "code", "said"),
    [
        (call("file_find", path="a"), "unknown_tool", "no tool 'file_find'; nearest: files_find"),
        (call("zzzz"), "unknown_tool", "there are look, files_find, now"),
        (
            call("files_find", limit=1),
            "missing_argument",
            "not given path; files_find takes path (string, req",
        ),
        (call("files_find", path="a", limits=1), "unknown_argument", "'limits'; nearest: limit"),
        (call("look", count="many"), "wrong_type", "look: count must be integer"),
        (call("look", deep="maybe"), "wrong_type", "deep must be boolean"),
        (call("look", list=[1, "x"]), "wrong_type", "list [1] must be integer, not string"),
        (call("look", list={"a": 1}), "wrong_type", "list must be array, not"),
        (
            call("look", choice="three"),
            "wrong_type",
            'choice must be one of ["one", "two"], not "three"',
        ),
        (call("look", ref="c"), "wrong_type", 'ref must be one of ["a", "b"]'),
        (call("look", maybe=[]), "wrong_type", "maybe must be integer or null"),
        (
            call("now", x=1),
            "unknown_argument",
            "now has no argument 'x'; there are none; now takes no arg",
        ),
    ],
)
def test_a_call_that_its_tool_does_not_take_is_named(
    name: str, bad: object, code: str, said: str
) -> None:
    good = call("now")
    parsed = parse(name, say(name, [good, bad, good]))
    assert parsed.calls == (good, good)
    (fault,) = parsed.unreadable
    assert (fault.code, said in fault.message) == (code, True), fault


@pytest.mark.parametrize("name", [H, X, G, M])
def test_calls_in_thinking(name: str) -> None:
    opening, closing = FORMATS[name].think
    said = say(name, [call("now")])
    open_ended = parse(name, f"{opening}I shall {said}")
    assert [each.code for each in open_ended.unreadable] == ["inside_think"]
    assert (open_ended.calls, open_ended.content) == ((), "")
    assert closing in open_ended.unreadable[0].message
    thought_of = parse(name, f"{opening}Not {said}{closing}{said}")
    assert (thought_of.calls, thought_of.unreadable) == ((call("now"),), ())
    assert thought_of.thinking == f"Not {said}"
    answered = parse(name, f"{opening}Not {said}{closing}It is noon.")
    assert answered == Parsed(content="It is noon.", thinking=f"Not {said}")
    only = parse(name, f"{opening}I shall {said}{closing}\n")
    assert [each.code for each in only.unreadable] == ["inside_think"]


@pytest.mark.parametrize("name", FORMATS)
def test_thinking_that_is_not_closed(name: str) -> None:
    opening, closing = FORMATS[name].think
    for opened in (True, False):
        parser = parser_named(name, opens_thinking=opened)
        parsed = parser.parse(f"{'' if opened else opening}Hm.", TOOLS)
        assert [each.code for each in parsed.unreadable] == ["unclosed"]
        assert parsed.thinking == "Hm."
        closed = parser.parse(f"Hm.{closing}Noon.", TOOLS)
        assert closed == Parsed(content="Noon.", thinking="Hm.")
    assert parse(name, "Noon.") == Parsed(content="Noon.")


@pytest.mark.parametrize("name", [H, X, M])
def test_a_tag_of_thinking_inside_a_call_is_text(name: str) -> None:
    bad = call("look", text="".join(FORMATS[name].think[::-1]))
    assert parse(name, say(name, [bad])).calls == (bad,)


def test_after_many_broken_calls_the_rest_is_not_read() -> None:
    for name in (H, X, G, M):
        broken = say(name, [call("nowhere")])
        parsed = parse(name, broken * 30 + say(name, [call("now")]))
        assert len(parsed.unreadable) == MOST_BROKEN
        assert parsed.calls == ()
        assert parsed.unreadable[-1].message.endswith("Nothing after it was read.")


def test_json_that_is_no_call_is_content_in_llama() -> None:
    for text in (
        '{"name": "Ada", "age": 36}',
        '[{"type": "invoice", "total": 5}]',
        '{"total": 5}',
        "The set {1, 2}.",
    ):
        assert parse(L, text) == Parsed(content=text)


@pytest.mark.parametrize(
    "text",
    [
        '<|python_tag|>{"name": "now", "parameters": {}}; {"name": "FIND", "parameters": PATH}',
        '{"name": "now", "arguments": {}};{"name": "FIND", "parameters": PATH}',
        '[{"name": "now", "parameters": {}}, {"name": "FIND", "parameters": PATH}]',
        '<|python_tag|>[{"type": "function", "name": "now"}, {"name": "FIND", "parameters": PATH}]',
        '{"type": "function", "name": "now", "parameters": {}}\n'
        '{"name": "FIND", "parameters": PATH}',
        'Well. {"name": "now", "parameters": {}}, {"name": "FIND", "parameters": PATH}',
    ],
)
def test_every_way_in_which_llama_calls(text: str) -> None:
    text = text.replace("FIND", "files_find").replace("PATH", '{"path": "a"}')
    parsed = parse(L, text)
    assert parsed.calls == (call("now"), call("files_find", path="a"))
    assert parsed.unreadable == ()


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS] [{"name": "now", "id": "abcdef"}, {"name": "FIND", "arguments": PATH}]',
        "[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]files_find[ARGS]PATH",
        '[TOOL_CALLS]now{}[TOOL_CALLS]files_find{"path": "a"}',
        "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}[TOOL_CALLS]files_find[CALL_ID]b[ARGS]PATH",
    ],
)
def test_every_way_in_which_mistral_calls(text: str) -> None:
    text = text.replace("FIND", "files_find").replace("PATH", '{"path": "a"}')
    parsed = parse(M, f"Well.{text}")
    assert parsed == Parsed(content="Well.", calls=(call("now"), call("files_find", path="a")))


def test_glm_calls_with_and_without_line_breaks() -> None:
    for text in (
        "<tool_call>files_find\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
        "<tool_call>files_find<arg_key>path</arg_key><arg_value>a</arg_value></tool_call>",
    ):
        assert parse(G, text).calls == (call("files_find", path="a"),)
    padded = "<tool_call>files_find<arg_key>path</arg_key><arg_value>\na\n</arg_value></tool_call>"
    assert parse(G, padded).calls == (call("files_find", path="\na\n"),)


def test_one_line_break_at_each_end_of_an_xml_value_is_the_formats() -> None:
    for value, read in (("a", "a"), ("\na\n", "a"), ("\n\na \n\n", "\na \n"), ("", ""), ("\n", "")):
        text = xml(f"<function=files_find>\n<parameter=path>{value}</parameter>\n</function>")
        assert parse(X, text).calls == (call("files_find", path=read),)


def test_a_turn_that_was_cut_off_is_told_so() -> None:
    assert cut_off(4096).code == "cut_off"
    assert "after 4096 tokens" in cut_off(4096).message
