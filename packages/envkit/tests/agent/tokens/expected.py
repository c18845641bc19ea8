# SPDX-License-Identifier: Apache-2.0
"""What follows a turn of the model in each family, written by hand."""

import json
from collections.abc import Sequence

from envkit.agent.types import Message

GENERATE = {
    "qwen3": "<|im_start|>assistant\n",
    "qwen3_xml": "<|im_start|>assistant\n<think>\n",
    "glm": "<|assistant|>",
    "llama3": "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "hermes": "<|im_start|>assistant\n",
}
"""The generation prompt."""

AFTER_STOP = {"qwen3": "\n", "qwen3_xml": "\n", "glm": "", "llama3": "", "hermes": "\n"}
"""What stands between a stop token and the next turn."""


def following(family: str, messages: Sequence[Message]) -> str:
    """Text behind a turn's stop token; in the GLM family with the one that answers begin with."""
    answers = [each.content for each in messages if each.role == "tool"]
    users = [each.content for each in messages if each.role == "user"]
    said = _answers(family, answers) if answers else ""
    said += "".join(_user(family, each) for each in users)
    return AFTER_STOP[family] + said + GENERATE[family]


def _answers(family: str, answers: Sequence[str]) -> str:
    blocks = [f"\n<tool_response>\n{each}\n</tool_response>" for each in answers]
    match family:
        case "qwen3" | "qwen3_xml":
            return f"<|im_start|>user{''.join(blocks)}<|im_end|>\n"
        case "glm":
            return f"<|observation|>{''.join(blocks)}"
        case "llama3":
            return "".join(
                "<|start_header_id|>ipython<|end_header_id|>\n\n"
                + json.dumps({"output": each}, ensure_ascii=False)
                + "<|eot_id|>"
                for each in answers
            )
        case _:
            return "".join(
                '<|im_start|>tool\n<tool_response>\n{"name": "look", "content": '
                + json.dumps(each, ensure_ascii=False)
                + "}\n</tool_response><|im_end|>\n"
                for each in answers
            )


def _user(family: str, content: str) -> str:
    match family:
        case "glm":
            return f"<|user|>\n{content}"
        case "llama3":
            return f"<|start_header_id|>user<|end_header_id|>\n\n{content.strip()}<|eot_id|>"
        case "qwen3_xml":
            return f"<|im_start|>user\n{content.strip()}<|im_end|>\n"
        case _:
            return f"<|im_start|>user\n{content}<|im_end|>\n"
