# SPDX-License-Identifier: Apache-2.0
"""Prompts have the ids that Hugging Face's transformers gives the same conversation."""

import json
import subprocess
from datetime import date
from pathlib import Path

import pytest

from envkit.agent.tokens import load_template
from envkit.agent.tokens.coder import to_template
from envkit.agent.types import CallRequest, Message, ToolSpec

from . import policy

ASKED = """
import json, sys
from datetime import date
from transformers import PreTrainedTokenizerFast
given = json.load(sys.stdin)
tokenizer = PreTrainedTokenizerFast.from_pretrained(sys.argv[1])
text = tokenizer.apply_chat_template(
    given["messages"], tools=given["tools"], add_generation_prompt=True, tokenize=False
)
ids = tokenizer.encode(text, add_special_tokens=False)
print(json.dumps({"ids": ids, "date": date.today().isoformat()}))
"""
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


@pytest.mark.parametrize("family", policy.FAMILIES)
@pytest.mark.parametrize("length", [2, 4, 5, 6])
def test_ids_are_those_of_transformers(
    engine_python: Path, checkpoint: Path, family: str, length: int
) -> None:
    directory = checkpoint / family
    messages = MESSAGES[:length]
    given = {"messages": [to_template(each) for each in messages], "tools": [TOOL.to_openai()]}
    done = subprocess.run(
        [engine_python, "-c", ASKED, directory],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    template = load_template(directory, today=date.fromisoformat(said["date"]))
    assert template.prompt(messages, [TOOL]) == said["ids"]
