# SPDX-License-Identifier: Apache-2.0
"""Bodies are what vLLM takes, made of encoded prompts; its recorded answers are read whole."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.engine.asked import Asked
from envkit.agent.engine.options import EngineOptions
from envkit.agent.engine.wire import Wire
from envkit.agent.types import EncodedPrompt
from envkit.trajectory.types import Sampling

from .recorded import RECORDED, answer_of, asked, wire_of


def sent_by(wire: Wire, question: Asked, salt: str = "") -> dict[str, Any]:
    return json.loads(b"".join(wire.body(question, "tiny", "r-1.1", salt)))


IDS = st.lists(st.integers(0, 2**31 - 1), min_size=1)


@pytest.mark.parametrize("protocol", ["generate", "completions"])
@given(st.lists(IDS, min_size=1))
def test_a_body_holds_the_ids_of_all_pieces_in_order(
    protocol: str, pieces: list[list[int]]
) -> None:
    question = asked(pieces[0])
    for piece in pieces[1:]:
        question.prompt.extend(piece)
    body = sent_by(wire_of(protocol), question)
    sent = body["prompt" if protocol == "completions" else "token_ids"]
    assert sent == [each for piece in pieces for each in piece]


@pytest.mark.parametrize("protocol", ["generate", "completions"])
def test_every_parameter_of_the_distribution_is_sent_and_only_our_stops_stop(protocol: str) -> None:
    sampling = Sampling(
        temperature=0.7,
        top_p=0.9,
        top_k=5,
        min_p=0.1,
        presence_penalty=0.2,
        frequency_penalty=0.3,
        repetition_penalty=1.1,
        seed=7,
        grammar='root ::= "a"',
    )
    body = sent_by(wire_of(protocol), asked(sampling=sampling, stop_ids=(2, 9)))
    sent = body if protocol == "completions" else body["sampling_params"]
    expected: dict[str, Any] = {
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 5,
        "min_p": 0.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
        "repetition_penalty": 1.1,
        "seed": 7,
        "structured_outputs": {"grammar": 'root ::= "a"'},
        "stop_token_ids": [2, 9],
        "ignore_eos": True,
        "max_tokens": 10,
    }
    assert {key: sent[key] for key in expected} == expected


def test_a_temperature_of_zero_is_asked_for_as_what_has_logprobs() -> None:
    body = sent_by(wire_of("generate"), asked(sampling=Sampling(temperature=0.0)))
    sent = body["sampling_params"]
    assert (sent["temperature"], sent["top_k"]) == (1.0, 1)


def test_what_is_asked_for_is_a_part_of_what_the_recorded_engine_took() -> None:
    """The names of fields: an engine ignores what it does not know."""
    for name in ("generate_stream", "completions_stream"):
        taken = RECORDED[name]["asked"]
        sent = sent_by(wire_of(name), asked())
        assert taken.keys() <= sent.keys(), name
        assert taken.get("sampling_params", {}).keys() <= sent.get("sampling_params", {}).keys()


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("generate", 10),
        ("generate_echo", 10),
        ("generate_stream", 10),
        ("generate_stop", 1),
        ("generate_stream_stop", 1),
        ("generate_updated", 60),
        ("completions", 10),
        ("completions_stream", 10),
        ("completions_stop", 1),
    ],
)
def test_recorded_answers_are_read_whole(name: str, ids: int) -> None:
    answer = answer_of(name)
    assert len(answer.ids) == len(answer.logprobs) == answer.sampled_tokens == ids
    assert answer.named == answer.ids
    assert answer.prompt_tokens == 4
    assert answer.finish == ("stop" if "stop" in name else "length")
    assert not answer.ids_missing
    assert not answer.logprobs_missing


@pytest.mark.parametrize("name", ["generate_top", "completions_top"])
def test_alternatives_of_both_protocols_hold_the_best_ones(name: str) -> None:
    answer = answer_of(name, asked(sampling=Sampling(top_logprobs=3)))
    for token, row in zip(answer.ids, answer.alternatives, strict=True):
        assert row[0][0] == token
        assert len({each for each, _ in row}) >= 3


@pytest.mark.parametrize("name", ["generate_echo", "completions", "completions_stream"])
def test_a_prompt_said_back_is_compared(name: str) -> None:
    assert answer_of(name).prompt_same is True
    assert answer_of(name, asked([1, 50, 51, 53])).prompt_same is False
    assert answer_of(name, asked([1, 50, 51])).prompt_same is False
    assert answer_of(name, asked([1, 50, 51, 52, 3])).prompt_same is False


def test_a_prompt_said_back_in_other_bytes_is_compared_by_its_ids() -> None:
    told = json.loads(RECORDED["generate_echo"]["body"])
    answer = wire_of("generate").read([json.dumps(told, indent=1).encode()], asked())
    assert answer.prompt_same is True


def test_generate_has_the_prompt_said_back_until_it_was_once() -> None:
    wire, question = wire_of("generate"), asked()
    assert sent_by(wire, question)["return_token_ids"] is True
    assert sent_by(wire, question)["return_token_ids"] is True
    wire.read([RECORDED["generate_echo"]["body"].encode()], question)
    assert sent_by(wire, question)["return_token_ids"] is False


@pytest.mark.parametrize("protocol", ["generate", "completions"])
def test_an_engine_that_is_not_to_stream_is_not_asked_to(protocol: str) -> None:
    options = EngineOptions(url="http://127.0.0.1:1", stream=False)
    body = sent_by(wire_of(protocol, options), asked())
    assert not body.keys() & {"stream", "stream_options", "stream_interval"}


@pytest.mark.parametrize("protocol", ["generate", "completions"])
def test_each_request_has_the_salt_it_was_given(protocol: str) -> None:
    wire = wire_of(protocol, EngineOptions(url="http://127.0.0.1:1"))
    bodies = [sent_by(wire, asked(), salt) for salt in ("", "v1", "v2", "v2", "")]
    assert [body.get("cache_salt") for body in bodies] == [None, "v1", "v2", "v2", None]


def test_an_encoded_prompt_is_not_encoded_again_when_it_grows() -> None:
    prompt = EncodedPrompt()
    prompt.extend([1, 2])
    text = prompt.text
    prompt.extend([])
    prompt.extend([3])
    assert prompt.text is text
    assert bytes(text) == b"1,2,3"
