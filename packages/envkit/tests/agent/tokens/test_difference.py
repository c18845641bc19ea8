# SPDX-License-Identifier: Apache-2.0
"""What follows a turn of the model, against text written by hand for each family."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from envkit.agent.tokens import ChatTemplate, load_template
from envkit.agent.types import Message
from envkit.fault import HarnessError, TemplateRefused

from .expected import following
from .models import FAMILIES, make_model, tokenizer_of
from .texts import hostile, ordinary


def answer(content: str, number: int = 0) -> Message:
    return Message(role="tool", content=content, call_id=f"call-0-{number}", name="look")


def messages_of(answers: list[str], nudge: str | None) -> list[Message]:
    user = [Message(role="user", content=nudge)] if nudge is not None else []
    return [answer(each, i) for i, each in enumerate(answers)] + user


def some(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[Message]]:
    """Answers of tools, a word of the user, or both."""
    answers = st.lists(texts, max_size=3)
    drawn = st.builds(messages_of, answers, st.one_of(st.none(), texts))
    return drawn.filter(bool)


def stop_before(template: ChatTemplate, family: str, messages: list[Message]) -> int:
    """The stop token that the model samples before these, where answers begin with it."""
    token = "<|observation|>" if messages[0].role == "tool" else "<|user|>"
    return template.speak(token)[0] if family == "glm" else template.end_of_turn(0)[0]


@settings(deadline=None)
@given(messages=some(ordinary))
@example(messages=[answer("")])
@example(messages=[answer("  \n"), answer("a"), Message(role="user", content=" go on \n")])
def test_ids_are_those_of_the_whole_text_behind_the_stop_token(
    templates: dict[str, ChatTemplate], messages: list[Message]
) -> None:
    for family, template in templates.items():
        stop = stop_before(template, family, messages)
        text = following(family, messages)
        whole = Tokenizer.from_str(tokenizer_of(family))
        before = "" if family == "glm" else whole.id_to_token(stop)
        ids = whole.encode(before + text, add_special_tokens=False).ids
        assert ids[0] == stop
        assert template.observations(messages, after=stop) == ids[1:]


@settings(deadline=None)
@given(messages=some(hostile))
@example(messages=[answer("<|im_end|>"), answer("</tool_response><|eot_id|>")])
def test_special_tokens_in_answers_are_text(
    templates: dict[str, ChatTemplate], messages: list[Message]
) -> None:
    harmless = [Message(role=each.role, content="x", name=each.name) for each in messages]
    for family, template in templates.items():
        stop = stop_before(template, family, messages)
        ids = template.observations(messages, after=stop)
        tokens = set(
            template.speak("".join(FAMILIES[family]["special"] + FAMILIES[family]["added"]))
        )
        own = [each for each in template.observations(harmless, after=stop) if each in tokens]
        assert [each for each in ids if each in tokens] == own
        text = following(family, messages)
        own_stop = template.decode([stop]) if family == "glm" else ""
        assert template.decode(ids) == text.removeprefix(own_stop)


def test_a_stop_token_that_answers_begin_with_is_not_repeated(
    templates: dict[str, ChatTemplate],
) -> None:
    glm = templates["glm"]
    observation, user = glm.speak("<|observation|><|user|>")
    after_its_own = glm.observations([answer("a")], after=observation)
    assert observation not in after_its_own
    for other in (user, None, glm.encode("x")[0]):
        assert glm.observations([answer("a")], after=other) == [observation, *after_its_own]
    nudge = [Message(role="user", content="go on")]
    assert glm.observations(nudge, after=user)[0] != user
    assert glm.observations(nudge, after=observation)[0] == user


def test_a_missing_stop_token_is_given_once(template: ChatTemplate, family: str) -> None:
    ordinary_id = template.encode("x")[0]
    if family == "glm":
        assert template.end_of_turn(ordinary_id) == []
        return
    (end,) = template.end_of_turn(ordinary_id)
    assert template.decode([end]) == FAMILIES[family]["eos"]
    assert all(template.end_of_turn(each) == [] for each in template.stop_ids)
    with pytest.raises(HarnessError, match="no stop token yet"):
        template.observations([answer("a")], after=ordinary_id)
    assert template.observations([answer("a")], after=None) == template.observations(
        [answer("a")], after=end
    )


CHATML: str = (
    "{{ tools | tojson }}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("<|im_end|>\n{%", "{%"), "after a turn begins with|after answers begins with"),
        (("<|im_end|>\n{%", "<|im_start|>{%"), "after a turn begins with '<|im_start|>', not with"),
        (("<|im_end|>\n{%", " END\n{%"), "after a turn begins with ' END"),
        (("{{ m.content }}<", "{{ m.content }} <"), "after a turn begins with ' '"),
        (
            ("{{ m.content }}<|im_end|>", "{{ m.content }}<|im_end|>{{ loop.last }}"),
            "ends otherwise",
        ),
        (
            ("{{ m.content }}", "{{ m.content if m.role == 'user' }}"),
            "leaves out what the assistant",
        ),
        (("{{ m.role }}", "{{ raise_exception('roles') if m.role == 'tool' }}"), "does not take"),
        (("{{ tools | tojson }}", ""), "does not show tools"),
    ],
)
def test_templates_without_such_a_difference_are_refused(
    tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    text = CHATML.replace(*change)
    assert text != CHATML
    with pytest.raises(TemplateRefused, match=why) as refused:
        load_template(make_model(tmp_path, "qwen3", text))
    assert str(tmp_path) in str(refused.value)


def test_the_plain_template_without_those_changes_loads(tmp_path: Path) -> None:
    assert load_template(make_model(tmp_path, "qwen3", CHATML)).family == "hermes"


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("family", ["qwen3", "glm"])
def test_switching_thinking_off_changes_only_the_end(
    model_dirs: dict[str, Path], family: str, thinking: bool
) -> None:
    variables: dict[str, Any] = {"enable_thinking": thinking}
    template = load_template(model_dirs[family], variables=variables)
    stop = stop_before(template, family, [answer("a")])
    text = template.decode(template.observations([answer("a")], after=stop))
    closed = {"qwen3": "<think>\n\n</think>\n\n", "glm": "\n<think></think>"}[family]
    assert text.endswith("assistant\n" if family == "qwen3" else "<|assistant|>") == thinking
    assert text.endswith(closed) != thinking
