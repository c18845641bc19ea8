# SPDX-License-Identifier: Apache-2.0
"""The scripted engine answers as the recorded vLLM does, byte for byte but for time and text."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .scripted import Script, Scripted, Turn, start_scripted

RECORDED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("vllm_0_32.json").read_text()
)
SAMPLED = [
    name
    for name, each in RECORDED.items()
    if each["status"] == 200 and "token_ids" in each["body"] and name != "completions_bare"
]


def choices(body: str) -> list[dict[str, Any]]:
    texts = re.findall(r"^data: (\{.*)$", body, re.MULTILINE) or [body]
    return [choice for text in texts for choice in json.loads(text)["choices"]]


def rows_of(choice: dict[str, Any]) -> list[list[list[float]]]:
    said = choice["logprobs"]
    if said is None:
        return [[[each, 0.0, 1]] for each in choice["token_ids"]]
    if "content" in said:
        keys = ("token_id", "logprob", "rank")
        return [
            [[each[key] for key in keys] for each in row["top_logprobs"]] for row in said["content"]
        ]
    return [
        [[int(name.removeprefix("token_id:")), value, 0] for name, value in row.items()]
        for row in said["top_logprobs"]
    ]


def turn_of(recorded: dict[str, Any]) -> Turn:
    """The script that says again what was recorded."""
    parts = choices(recorded["body"])
    spans = parts[-1].get("weight_versions") or [{"version": "default", "start": 0}]
    return Turn(
        ids=[each for part in parts for each in part["token_ids"]],
        top=[row for part in parts for row in rows_of(part)],
        versions=[(each["version"], each["start"]) for each in spans],
    )


@pytest.fixture(params=SAMPLED)
def recorded(request: pytest.FixtureRequest) -> dict[str, Any]:
    return RECORDED[request.param]


@pytest.fixture(scope="module")
def engine() -> Iterator[Scripted]:
    with start_scripted(Script(version="8")) as engine:
        yield engine


def ask(engine: Scripted, exchange: dict[str, Any]) -> tuple[int, str, str]:
    body = None if exchange["asked"] is None else json.dumps(exchange["asked"]).encode()
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(engine.url + exchange["path"], body, head)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.headers["Content-Type"], refusal.read().decode()


def timeless(text: str) -> str:
    """Without what no script can know: when, and the text that ids stand for."""
    return re.sub(r'"created":\d+|"text":"(?:[^"\\]|\\.)*"|modelperm-\w+', "", text)


@pytest.mark.integration
def test_it_samples_in_the_very_bytes_of_vllm(recorded: dict[str, Any], engine: Scripted) -> None:
    engine.play(Script(turns=[turn_of(recorded)]))
    status, kind, body = ask(engine, recorded)
    assert (status, kind) == (200, recorded["type"])
    assert timeless(body) == timeless(recorded["body"])


@pytest.mark.integration
@pytest.mark.parametrize("name", ["version", "models", "weight_info", "wrong_model"])
def test_it_says_of_itself_what_vllm_says(name: str, engine: Scripted) -> None:
    engine.play(Script(version="8"))
    status, kind, body = ask(engine, RECORDED[name])
    assert status == RECORDED[name]["status"]
    assert kind.startswith(RECORDED[name]["type"])
    assert timeless(body) == timeless(RECORDED[name]["body"])


@pytest.mark.integration
def test_a_prompt_that_goes_on_after_an_answer_gets_the_next_turn(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=[10, 2]), Turn(ids=[11, 2]), Turn(ids=[12, 2])]))
    first = sampled(engine, [1, 5])
    assert first == sampled(engine, [1, 5]) == [10, 2]
    assert sampled(engine, [1, 5, *first, 7]) == [11, 2]
    assert sampled(engine, [1, 6, *first, 7]) == [10, 2]
    assert sampled(engine, [1, 5, *first, 7, 11, 2, 8]) == [12, 2]


def sampled(engine: Scripted, prompt: list[int]) -> list[int]:
    asked = {**RECORDED["generate"]["asked"], "token_ids": prompt}
    _, _, body = ask(engine, {"path": "/inference/v1/generate", "asked": asked})
    return choices(body)[0]["token_ids"]
