# SPDX-License-Identifier: Apache-2.0
"""Content that cannot be taken for special tokens."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envkit.agent.tokens.guard import PRIVATE, Guard
from envkit.fault import TemplateRefused

from .texts import SPECIAL, hostile, ordinary


def guarded(content: str, role: str = "tool") -> tuple[str, Guard]:
    message = {"role": role, "content": content}
    guard = Guard(SPECIAL, [message])
    return guard.message(message)["content"], guard


@settings(deadline=None)
@given(content=hostile)
@example(content="<|im_<|im_end|>")
@example(content="<think<think>>")
@example(content="[gMASK][gMASK]")
def test_no_token_is_left_whole_and_the_text_comes_back(content: str) -> None:
    text, guard = guarded(content)
    assert not [each for each in SPECIAL if each in text]
    assert guard.remove(text) == content


@settings(deadline=None)
@given(before=st.sampled_from(["", *SPECIAL, "x"]), content=hostile, after=st.sampled_from(SPECIAL))
@example(before="<|im_start", content="|>", after="x")
@example(before="<", content="  tool_call> \n", after="x")
@example(before="<tool_call>", content="\ntool_call", after="<tool_call>")
def test_no_token_is_completed_across_a_seam(before: str, content: str, after: str) -> None:
    for cut in range(1, max(len(before), 2)):
        text, _ = guarded(content)
        for said in filter(None, (text, text.strip())):
            rendered = before[:cut] + said + after[-cut:]
            for each in SPECIAL:
                at = rendered.find(each)
                assert at < 0 or at + len(each) <= cut or at >= cut + len(said)


@settings(deadline=None)
@given(
    content=ordinary.filter(lambda text: not text.strip().startswith(tuple("|>_<]tacg[M/eiosu")))
)
def test_ordinary_text_between_letters_is_left_alone(content: str) -> None:
    assert guarded(f"Say {content} then.")[0] == f"Say {content} then."


@pytest.mark.parametrize("around", ["", " ", "\n\t"])
def test_white_space_at_the_ends_can_still_be_stripped(around: str) -> None:
    text, guard = guarded(f"{around}> quoted <{around}")
    assert guard.remove(text.strip()) == "> quoted <"


def test_thinking_of_an_earlier_turn_is_left_for_the_template() -> None:
    text, guard = guarded("<think>\n<|im_end|>\n</think>done", "assistant")
    assert text.startswith("<think>")
    assert "</think>done" in text
    assert "<|im_end|>" not in text
    assert guard.remove(text) == "<think>\n<|im_end|>\n</think>done"


@settings(deadline=None)
@given(content=hostile)
def test_marks_that_a_filter_escaped_come_out_too(content: str) -> None:
    text, guard = guarded(content)
    for ascii_only in (True, False):
        assert json.loads(guard.remove(json.dumps(text, ensure_ascii=ascii_only))) == content


def test_names_keys_and_values_of_calls_and_schemas_are_text() -> None:
    said: dict[str, Any] = {
        "name": "<|im_end|>",
        "parameters": {"think": {"enum": ["<think>"], "n": 1}, "type": "object", "<tool_call>": []},
    }
    guard = Guard(SPECIAL, said)
    text = json.dumps(guard.tool(said), ensure_ascii=False)
    assert not [each for each in SPECIAL if each in text]
    assert "think" not in guard.tool(said)["parameters"]
    assert json.loads(guard.remove(text)) == said
    assert "type" in guard.tool(said)["parameters"]


def test_a_mark_that_occurs_is_not_used() -> None:
    _, guard = guarded("\ue000 \\ue001")
    assert guard.mark == "\ue002"
    with pytest.raises(TemplateRefused, match="every private character"):
        guarded("".join(map(chr, PRIVATE)))


def test_all_characters_of_a_font_end_no_episode() -> None:
    font = "".join(map(chr, range(0xE000, 0xF900)))
    text, guard = guarded(f"<|im_end|>{font}")
    assert "<|im_end|>" not in text
    assert guard.remove(text) == f"<|im_end|>{font}"
    assert guard.remove(json.dumps(text)) == json.dumps(f"<|im_end|>{font}")
