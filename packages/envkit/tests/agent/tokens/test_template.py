# SPDX-License-Identifier: Apache-2.0
"""A model directory, loaded: what it says, what it is refused for, and that it may fork."""

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from envkit.agent.tokens import ChatTemplate, load_template
from envkit.agent.tokens.family import PARSERS
from envkit.agent.types import CallRequest, Message, ToolSpec
from envkit.fault import TemplateRefused

from .models import FAMILIES, make_model
from .texts import hostile

LOOK = ToolSpec(
    name="look",
    description="Looks at <|im_end|>.",
    parameters={"type": "object", "properties": {"think": {"type": "string"}}},
)
ASK = [Message(role="system", content="Be brief."), Message(role="user", content="Where is it?")]


def test_each_family_is_known_by_what_it_renders(template: ChatTemplate, family: str) -> None:
    assert template.family == family
    assert template.parser_name == PARSERS[family]
    assert template.opens_thinking == (family == "qwen3_xml")
    assert [template.decode([each]) for each in template.stop_ids] == sorted(
        FAMILIES[family]["stops"], key=lambda each: template.speak(each)[0]
    )


def test_a_prompt_is_the_whole_rendering(template: ChatTemplate, family: str) -> None:
    tool = ToolSpec(name="look", description="Looks.", parameters=LOOK.parameters)
    ids = template.prompt(ASK, [tool])
    text = template.decode(ids)
    assert template.speak(text) == ids
    assert "Be brief." in text
    assert '"name": "look"' in text
    assert "Where is it?" in text


@settings(deadline=None)
@given(content=hostile)
def test_no_text_of_a_prompt_becomes_a_token(
    templates: dict[str, ChatTemplate], content: str
) -> None:
    call = CallRequest(name="look", arguments={"think": content, content or "k": [content]})
    said = [
        Message(role="system", content=content),
        Message(role="user", content=content),
        Message(role="assistant", content="Well.", calls=(call,)),
        Message(role="tool", content=content, call_id=content, name="look"),
    ]
    plain = [
        Message(role="system", content="x"),
        Message(role="user", content="x"),
        Message(
            role="assistant",
            content="Well.",
            calls=(CallRequest(name="look", arguments={"think": "x", "k": ["x"]}),)
            if content != "think"
            else (CallRequest(name="look", arguments={"think": "x"}),),
        ),
        Message(role="tool", content="x", call_id="x", name="look"),
    ]
    tool = ToolSpec(name="look", description=content, parameters={"enum": [content]})
    simple = ToolSpec(name="look", description="x", parameters={"enum": ["x"]})
    for family, template in templates.items():
        parts = FAMILIES[family]
        tokens = set(template.speak("".join(parts["special"] + parts["added"])))
        ids = template.prompt(said, [tool])
        own = [each for each in template.prompt(plain, [simple]) if each in tokens]
        assert [each for each in ids if each in tokens] == own


def test_a_copy_loads_as_the_same(template: ChatTemplate, family: str, tmp_path: Path) -> None:
    template.save(tmp_path / "copy")
    copy = load_template(tmp_path / "copy")
    for name in ("tokenizer_digest", "template_digest", "stop_ids", "family"):
        assert getattr(copy, name) == getattr(template, name)
    assert copy.prompt(ASK, [LOOK]) == template.prompt(ASK, [LOOK])


def test_digests_tell_templates_variables_and_dates_apart(model_dirs: dict[str, Path]) -> None:
    llama, qwen = model_dirs["llama3"], model_dirs["qwen3"]
    loaded = [
        load_template(llama),
        load_template(llama, today=date(2030, 1, 1)),
        load_template(qwen),
        load_template(qwen, variables={"enable_thinking": False}),
    ]
    assert len({each.template_digest for each in loaded}) == 4
    assert len({each.tokenizer_digest for each in loaded}) == 2


def test_the_same_prompt_has_the_same_ids_on_another_day(model_dirs: dict[str, Path]) -> None:
    llama = load_template(model_dirs["llama3"])
    assert "Today Date: 26 Jul 2024" in llama.decode(llama.prompt(ASK, [LOOK]))


def test_a_family_and_a_template_can_be_named(model_dirs: dict[str, Path]) -> None:
    file = model_dirs["hermes"] / "chat_template.jinja"
    named = load_template(model_dirs["qwen3"], family="qwen3", template=file)
    assert named.family == "qwen3"
    assert load_template(model_dirs["qwen3"], template=file).family == "hermes"
    with pytest.raises(TemplateRefused, match="no template family 'gpt'; known: qwen3"):
        load_template(model_dirs["qwen3"], family="gpt")


def test_an_older_directory_has_its_template_in_the_configuration(tmp_path: Path) -> None:
    directory = make_model(tmp_path, "hermes")
    file = directory / "chat_template.jinja"
    config = directory / "tokenizer_config.json"
    named = json.loads(config.read_text())
    for value in (
        file.read_text(),
        [{"name": "default", "template": "x"}, {"name": "tool_use", "template": file.read_text()}],
    ):
        bos = {"content": named["bos_token"], "lstrip": False}
        config.write_text(json.dumps({**named, "bos_token": bos, "chat_template": value}))
        (tmp_path / "aside").write_text(file.read_text())
        file.unlink()
        assert load_template(directory).family == "hermes"
        file.write_text((tmp_path / "aside").read_text())


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("tokenizer.json", None, "tokenizer.json: No such file or directory; name the directory"),
        ("tokenizer.json", "{}", "tokenizer.json cannot be read"),
        ("chat_template.jinja", None, "no chat template; add chat_template.jinja"),
        ("chat_template.jinja", "{% if %}", "cannot be compiled"),
        ("tokenizer_config.json", "[1]", "is no JSON object"),
        ("tokenizer_config.json", "{", "is no JSON"),
        ("generation_config.json", '{"eos_token_id": 99999}', "unknown stop tokens"),
        (
            "generation_config.json",
            '{"eos_token_id": 3}',
            "begins with '<|im_end|>', not with a stop",
        ),
    ],
)
def test_what_is_wrong_with_a_directory_is_said_in_one_line(
    tmp_path: Path, file: str, text: str | None, why: str
) -> None:
    directory = make_model(tmp_path, "qwen3")
    if file == "generation_config.json":
        (directory / "tokenizer_config.json").unlink()
    (directory / file).unlink()
    if text is not None:
        (directory / file).write_text(text)
    with pytest.raises(TemplateRefused) as refused:
        load_template(directory)
    assert why in str(refused.value)
    assert str(directory) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_template_of_no_known_family_is_refused(tmp_path: Path) -> None:
    text = (
        "{{ tools | tojson }}{% for m in messages %}<|im_end|>{{ m.role }} {{ m.content }}"
        "{% endfor %}<|im_end|>"
    )
    with pytest.raises(TemplateRefused, match=r"of no known family; .* qwen3 qwen3_xml glm llama3"):
        load_template(make_model(tmp_path, "qwen3", text))


FORK = """
import os, sys
from pathlib import Path
from envkit.agent.tokens import load_template
from envkit.agent.types import Message
before = len(os.listdir("/proc/self/task"))  # a numerical library's own
template = load_template(Path(sys.argv[1]))
messages = [Message(role="tool", content="word " * 20000, call_id="a", name="look")]
ids = template.observations(messages, after=template.stop_ids[0])
assert len(os.listdir("/proc/self/task")) == before
if os.fork() == 0:
    same = template.observations(messages, after=template.stop_ids[0]) == ids
    os._exit(0 if same and len(os.listdir("/proc/self/task")) == 1 else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]), os.environ["TOKENIZERS_PARALLELISM"])
"""


def test_loading_and_encoding_start_no_thread_and_survive_a_fork(
    model_dirs: dict[str, Path],
) -> None:
    environment: dict[str, Any] = {**os.environ, "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(model_dirs["qwen3"])],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert (done.stdout, done.stderr) == ("0 false\n", "")


def test_a_private_character_in_a_schema_stays(template: ChatTemplate) -> None:
    tool = ToolSpec(name="look", description="\ue000", parameters={"enum": ["\\ue001"]})
    text = template.decode(template.prompt([Message(role="user", content="<think>")], [tool]))
    assert "\ue000" in text
    assert "\\ue001" in text
