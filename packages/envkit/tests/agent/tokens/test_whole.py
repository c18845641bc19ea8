# SPDX-License-Identifier: Apache-2.0
"""The stream against the whole conversation rendered anew: where they agree, and where not.

The table of docs/tokens.md: each of its rows is a test here.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.agent.parse.format import say
from envkit.agent.tokens import ChatTemplate
from envkit.agent.types import CallRequest, Message, ToolSpec

from .texts import hostile, ordinary

LOOK = ToolSpec(
    name="look",
    description="Looks.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}},
)
ASK = [Message(role="user", content="Where is it?")]
STOP = {"llama3": "<|eot_id|>", "glm": "<|observation|>"}
"""What the model samples at the end of a turn that calls; ``<|im_end|>`` in the other families."""
OPENING = {"glm": "\n<think></think>\n"}
"""What a model of the family says first, where it does not think."""


def turn(family: str, template: ChatTemplate, calls: list[CallRequest]) -> str:
    said = say(template.parser_name, calls)
    return OPENING.get(family, "") + said + STOP.get(family, "<|im_end|>")


def stream(template: ChatTemplate, turns: list[tuple[str, list[Message]]]) -> list[int]:
    """Prompt, then what the model says and what follows it, turn by turn."""
    ids = template.prompt(ASK, [LOOK])
    for said, following in turns:
        sampled = template.speak(said)
        added = template.end_of_turn(sampled[-1])
        ids += [*sampled, *added]
        ids += template.observations(following, after=ids[-1])
    return ids


def answered(number: int, content: str) -> Message:
    return Message(role="tool", content=content, call_id=f"call-0-{number}", name="look")


def call(at: str) -> CallRequest:
    return CallRequest(name="look", arguments={"at": at})


@pytest.mark.parametrize("family", ["qwen3", "glm", "llama3", "hermes"])
@settings(deadline=None, max_examples=60)
@given(
    rounds=st.lists(
        st.lists(st.tuples(ordinary, hostile), min_size=1, max_size=3), min_size=1, max_size=3
    )
)
def test_turns_of_calls_agree_with_the_whole_rendering(
    templates: dict[str, ChatTemplate], family: str, rounds: list[list[tuple[str, str]]]
) -> None:
    template = templates[family]
    turns: list[tuple[str, list[Message]]] = []
    messages = list(ASK)
    for each in rounds:
        calls = [call(at) for at, _ in each]
        following = [answered(i, content) for i, (_, content) in enumerate(each)]
        turns.append((turn(family, template, calls), following))
        messages += [Message(role="assistant", content="", calls=tuple(calls)), *following]
    assert stream(template, turns) == template.prompt(messages, [LOOK])


def departs(
    template: ChatTemplate, said: str, rendered: Message, *, same_text: bool = False
) -> None:
    following = [answered(0, "There.")]
    ids = stream(template, [(said, following)])
    whole = template.prompt([*ASK, rendered, *following], [LOOK])
    assert ids != whole
    assert (template.decode(ids) == template.decode(whole)) == same_text
    sampled = template.speak(said)
    start = len(template.prompt(ASK, [LOOK]))
    assert ids[start : start + len(sampled)] == sampled


def test_arguments_stay_as_the_model_said_them(templates: dict[str, ChatTemplate]) -> None:
    for family in ("qwen3", "hermes", "llama3"):
        template = templates[family]
        packed = json.dumps(
            {"name": "look", "parameters" if family == "llama3" else "arguments": {"at": "x"}},
            separators=(",", ":"),
        )
        said = packed if family == "llama3" else f"<tool_call>\n{packed}\n</tool_call>"
        rendered = Message(role="assistant", content="", calls=(call("x"),))
        departs(template, said + STOP.get(family, "<|im_end|>"), rendered)


@pytest.mark.parametrize(
    ("family", "said", "stop"),
    [
        ("qwen3", "<think>\nHm.\n</think>\n\nWhat do you mean?", "<|im_end|>"),
        ("glm", "\n<think>Hm.</think>\nWhat do you mean?", "<|user|>"),
    ],
)
def test_thinking_of_turns_before_a_user_stays(
    templates: dict[str, ChatTemplate], family: str, said: str, stop: str
) -> None:
    template = templates[family]
    go_on = [Message(role="user", content="Go on.")]
    ids = stream(template, [(said + stop, go_on)])
    rendered = Message(role="assistant", content=said.lstrip())
    whole = template.prompt([*ASK, rendered, *go_on], [LOOK])
    assert "Hm." in template.decode(ids)
    assert "Hm." not in template.decode(whole)
    following = template.observations(go_on, after=template.speak(stop)[0])
    assert whole[-len(following) :] == ids[-len(following) :] == following


def test_thinking_of_turns_after_the_last_user_agrees(templates: dict[str, ChatTemplate]) -> None:
    template = templates["qwen3"]
    thought = "<think>\nHm.\n</think>\n\n"
    following = [answered(0, "There.")]
    said = thought + say("hermes", [call("x")]) + "<|im_end|>"
    rendered = Message(role="assistant", content=thought, calls=(call("x"),))
    assert stream(template, [(said, following)]) == template.prompt(
        [*ASK, rendered, *following], [LOOK]
    )


def test_white_space_that_the_template_strips_stays(templates: dict[str, ChatTemplate]) -> None:
    rendered = Message(role="assistant", content=" Well. ")
    departs(templates["llama3"], " Well. <|eot_id|>", rendered)
    departs(templates["glm"], "\n<think></think>\n Well. <|observation|>", rendered)


def test_the_opening_of_thinking_in_the_prompt_stays(templates: dict[str, ChatTemplate]) -> None:
    rendered = Message(role="assistant", content="", calls=(call("x"),))
    said = "Hm.\n</think>\n\n" + say("qwen3_xml", [call("x")]) + "<|im_end|>"
    departs(templates["qwen3_xml"], said, rendered)


def test_another_stop_token_than_the_templates_stays(templates: dict[str, ChatTemplate]) -> None:
    rendered = Message(role="assistant", content="", calls=(call("x"),))
    for family, stop in (("qwen3", "<|endoftext|>"), ("llama3", "<|eom_id|>")):
        template = templates[family]
        departs(template, say(template.parser_name, [call("x")]) + stop, rendered)
    glm = templates["glm"]
    said = turn("glm", glm, [call("x")]).replace("<|observation|>", "<|user|>")
    departs(glm, said, rendered)


def test_tokens_that_no_tokenizer_would_choose_are_not_found_again(template: ChatTemplate) -> None:
    letters = [one for each in "report" for one in template.encode(each)]
    assert template.decode(letters) == "report"
    assert template.speak(template.decode(letters)) != letters


@pytest.mark.parametrize("family", ["qwen3", "qwen3_xml", "llama3", "hermes"])
def test_a_cut_turn_gets_the_stop_token_that_it_lacks(
    templates: dict[str, ChatTemplate], family: str
) -> None:
    template = templates[family]
    repair = [Message(role="user", content="You were cut off.")]
    opened = "<think>\n" if template.opens_thinking else ""
    ids = stream(template, [("I was just", repair)])
    messages = [*ASK, Message(role="assistant", content=f"{opened}I was just"), *repair]
    assert ids == template.prompt(messages, [LOOK])


def test_a_cut_turn_ends_where_the_next_begins_in_glm(templates: dict[str, ChatTemplate]) -> None:
    template = templates["glm"]
    repair = [Message(role="user", content="You were cut off.")]
    ids = stream(template, [("\n<think></think>\nI was just", repair)])
    messages = [*ASK, Message(role="assistant", content="I was just"), *repair]
    assert ids == template.prompt(messages, [LOOK])
