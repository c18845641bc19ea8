# SPDX-License-Identifier: Apache-2.0
"""Chat templates as Hugging Face renders them."""

from datetime import date
from typing import Any

import pytest

from envkit.agent.tokens.rendering import Rendering
from envkit.fault import TemplateRefused

ASK: dict[str, Any] = {"role": "user", "content": "<b>&'\"é"}


def render(text: str, *messages: dict[str, Any], **variables: Any) -> str:
    return Rendering(text, variables).render(messages or (ASK,), generate=True)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "<b>&\'\\"é"}'),
        ("{{ [1, 2] | tojson(indent=1) }}", "[\n 1,\n 2\n]"),
        ("{{ {'b': 1, 'a': 2} | tojson(separators=(',', ':'), sort_keys=true) }}", '{"a":2,"b":1}'),
        ("{{ messages[0].content }}", "<b>&'\"é"),
        ("a\n{% if true %}\nb\n  {% endif %}\nc", "a\nb\nc"),
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
        ("{% generation %}{{ messages[0].role }}{% endgeneration %}!", "user!"),
        ("{{ strftime_now('%d %b %Y') }}", "26 Jul 2024"),
        ("{{ bos_token }}{{ missing }}{{ tools is none }}", "True"),
        ("{{ add_generation_prompt }} {{ documents is none }}", "True True"),
    ],
)
def test_what_a_template_can_say(text: str, rendered: str) -> None:
    assert render(text) == rendered


def test_variables_are_given() -> None:
    assert render(
        "{{ bos_token }}{{ enable_thinking }}", bos_token="<s>", enable_thinking=False
    ) == ("<s>False")


def test_the_date_is_the_one_that_was_given() -> None:
    rendering = Rendering("{{ strftime_now('%Y-%m-%d %H') }}", {}, date(2031, 2, 3))
    assert rendering.render([ASK], generate=False) == "2031-02-03 00"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ raise_exception('no system prompt') }}", r"does not take \(user\): no system prompt"),
        ("{{ messages[0].content + 1 }}", "does not take"),
        ("{{ messages[7].content }}", "does not take"),
        ("{{ messages.append(1) }}", "does not take"),
        ("{{ ''.__class__.__mro__ }}", "does not take"),
        ("{% if %}", "cannot be compiled"),
    ],
)
def test_what_goes_wrong_in_a_template_is_said(text: str, why: str) -> None:
    with pytest.raises(TemplateRefused, match=why):
        render(text)


def test_the_digest_covers_text_variables_and_date() -> None:
    plain = Rendering("a", {}).digest
    assert plain == Rendering("a", {}).digest
    others = {Rendering("b", {}).digest, Rendering("a", {"x": 1}).digest}
    assert len({plain, *others, Rendering("a", {}, date(2030, 1, 1)).digest}) == 4
