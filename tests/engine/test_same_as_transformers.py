# SPDX-License-Identifier: Apache-2.0
"""Prompts have the ids that Hugging Face's transformers gives the same conversation."""

import json
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from envkit.agent.tokens import load_template
from envkit.agent.tokens.coder import to_template
from envkit.agent.types import CallRequest, Message, ToolSpec

from . import policy

ANSWER_S = 120
ASKED = """
import json, sys
from datetime import date
from transformers import PreTrainedTokenizerFast
given, said = json.load(sys.stdin), {"date": date.today().isoformat()}
for directory in sys.argv[1:]:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
    texts = (
        tokenizer.apply_chat_template(
            messages, tools=given["tools"], add_generation_prompt=True, tokenize=False
        )
        for messages in given["conversations"]
    )
    said[directory] = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
print(json.dumps(said))
"""
"""One process for all: importing transformers takes longer than what is asked."""
TOOL = ToolSpec(
    name="look",
    description="Looks at <b>bold</b> things & 'others'.",
    parameters={
        "type": "object",
        "properties": {"where": {"type": "string", "description": "Größe, 東京"}},
        "required": ["where"],
    },
)
CALL = CallRequest(name="look", arguments={"where": "a&b'\"", "often": 3}, call_id="call-0-1")
MESSAGES = [
    Message(role="system", content="Be <brief>.\n"),
    Message(role="user", content=" > Where is it? "),
    Message(role="assistant", content="Let me look.", calls=(CALL,)),
    Message(role="tool", content='{"x": 1}\n', call_id="call-0-1", name="look"),
    Message(role="tool", content="", call_id="call-0-2", name="look"),
    Message(role="user", content="Go on."),
]


LENGTHS = (2, 4, 5, 6)


@pytest.fixture(scope="module")
def said(engine_python: Path, checkpoint: Path) -> dict[str, Any]:
    """By directory, the ids of every length of the conversation; and the day they were made on."""
    messages = [to_template(each) for each in MESSAGES]
    given = {"conversations": [messages[:n] for n in LENGTHS], "tools": [TOOL.to_openai()]}
    done = subprocess.run(
        [engine_python, "-c", ASKED, *(checkpoint / family for family in policy.FAMILIES)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        timeout=ANSWER_S,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("family", policy.FAMILIES)
@pytest.mark.parametrize("length", LENGTHS)
def test_ids_are_those_of_transformers(
    said: dict[str, Any], checkpoint: Path, family: str, length: int
) -> None:
    directory = checkpoint / family
    template = load_template(directory, today=date.fromisoformat(said["date"]))
    ids = said[str(directory)][LENGTHS.index(length)]
    assert template.prompt(MESSAGES[:length], [TOOL]) == ids
