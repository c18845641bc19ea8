# SPDX-License-Identifier: Apache-2.0
"""What the recorded vLLM was asked and answered, in the terms of the client."""

import json
from pathlib import Path
from typing import Any

from envkit.agent.engine.answer import Answer
from envkit.agent.engine.asked import Asked
from envkit.agent.engine.events import DONE, Events
from envkit.agent.engine.options import EngineOptions
from envkit.agent.engine.wire import Completions, Generate, Wire
from envkit.agent.types import EncodedPrompt
from envkit.trajectory.types import Sampling

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "engines" / "vllm_0_32.json").read_text()
)


PLAIN = Sampling()


def prompt_of(ids: list[int]) -> EncodedPrompt:
    prompt = EncodedPrompt()
    prompt.extend(ids)
    return prompt


def asked(
    ids: list[int] | None = None,
    *,
    max_tokens: int = 10,
    stop_ids: tuple[int, ...] = (2,),
    sampling: Sampling = PLAIN,
) -> Asked:
    return Asked(
        prompt=prompt_of([1, 50, 51, 52] if ids is None else ids),
        max_tokens=max_tokens,
        stop_ids=stop_ids,
        sampling=sampling,
        request_id="r-1",
    )


def wire_of(name: str, options: EngineOptions | None = None) -> Wire:
    options = options or EngineOptions(url="http://127.0.0.1:1")
    return Completions(options) if name.startswith("completions") else Generate(options)


def answer_of(name: str, question: Asked | None = None) -> Answer:
    """A recorded answer, read as the client reads it."""
    exchange = RECORDED[name]
    body = exchange["body"].encode()
    streams = exchange["type"].startswith("text/event-stream")
    payloads = Events().feed(body) if streams else [body]
    return wire_of(name).read([each for each in payloads if each != DONE], question or asked())
