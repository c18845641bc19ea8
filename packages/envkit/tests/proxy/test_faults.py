# SPDX-License-Identifier: Apache-2.0
"""Faults of the engine: what the client is told, how it goes on, and what stands on the record."""

from __future__ import annotations

import socket
import time
from typing import Any

import openai
import pytest

from envkit.trajectory.types import Stop

from ..engines.scripted import Order
from .small import ASK, READ, TOOLS, USER, Proxied, chat, results

TRANSIENT = {
    "busy": (429, "EngineBusy"),
    "unavailable": (429, "EngineBusy"),
    "failed": (503, "EngineFailed"),
    "hang up": (503, "EngineUnreachable"),
    "drop": (503, "EngineUnreachable"),
    "garbage": (503, "EngineGarbage"),
    "not json": (503, "EngineGarbage"),
    "html": (503, "EngineGarbage"),
    "error event": (503, "EngineFailed"),
    "abort": (503, "EngineAborted"),
}
FINAL = {
    "no ids": "NoTokenIds",
    "no logprobs": "NoLogprobs",
    "positive logprob": "BadLogprobs",
    "too many": "WrongStop",
    "foreign id": "OutOfVocabulary",
    "refused": "EngineRefused",
}


def asked_with(proxy: Proxied) -> list[list[int]]:
    """Ids that the engine was asked with, request by request."""
    return [each["token_ids"] for each in proxy.asked()]


@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_fault_is_the_clients_to_try_again_with_the_same_tokens(
    proxy: Proxied, fault: str
) -> None:
    name = f"again-{fault.replace(' ', '-')}"
    proxy.play(READ, "done", orders=[Order(fault=fault, turn=1)])
    with proxy.client(name) as client:
        message = chat(client, [*ASK], tools=TOOLS).choices[0].message
        messages = [*ASK, *results(message, "text")]
        with pytest.raises(openai.APIStatusError) as refused:
            chat(client, messages, tools=TOOLS)
        body: Any = refused.value.body
        assert (refused.value.status_code, body["code"]) == TRANSIENT[fault]
        chat(client, messages, tools=TOOLS)
    first, second, third = asked_with(proxy)
    assert second == third
    assert second[: len(first)] == first
    (told,) = proxy.end(name, reward=1.0)
    assert told["reward_valid"], told
    assert [each.tries for each in proxy.row(name).episode.requests] == [1, 2]


def test_the_clients_own_retries_heed_what_it_is_told(proxy: Proxied) -> None:
    proxy.play("done", orders=[Order(fault="failed", times=2)])
    with proxy.client("own").with_options(max_retries=3) as client:
        assert chat(client, [*ASK]).choices[0].message.content == "done"
    (told,) = proxy.end("own", reward=1.0)
    assert told["reward_valid"]


def test_a_fault_that_was_not_overcome_stands_on_the_record(proxy: Proxied) -> None:
    proxy.play(READ, "done", orders=[Order(fault="failed", turn=1)])
    with proxy.client("fault") as client:
        message = chat(client, [*ASK], tools=TOOLS).choices[0].message
        with pytest.raises(openai.InternalServerError):
            chat(client, [*ASK, *results(message, "text")], tools=TOOLS)
    proxy.end("fault", reward=0.0)
    row = proxy.row("fault")
    assert row.episode.stop is Stop.FAULT
    assert row.outcome.fault is not None
    assert (row.outcome.fault.code, row.outcome.fault.owner) == ("EngineFailed", "engine")
    assert (row.outcome.reward, row.outcome.reward_valid) == (0.0, False)


@pytest.mark.parametrize("fault", FINAL)
def test_what_may_not_be_trained_on_is_never_asked_for_again(proxy: Proxied, fault: str) -> None:
    name = f"final-{fault.replace(' ', '-')}"
    proxy.play("one", "two", orders=[Order(fault=fault, turn=1)])
    with proxy.client(name).with_options(max_retries=2) as client:
        said = chat(client, [*ASK]).choices[0].message.model_dump()
        with pytest.raises(openai.InternalServerError) as refused:
            chat(client, [*ASK, said, USER])
        assert refused.value.status_code == 502
        assert len(proxy.asked()) == 2
        chat(client, [*ASK, said, USER])
    first, second = proxy.end(name, reward=1.0)
    assert first["unproven"].startswith(FINAL[fault])
    assert second["unproven"].startswith("engine_fault")
    assert not first["reward_valid"] | second["reward_valid"]


def test_a_full_context_is_told_as_clients_know_it(proxy: Proxied) -> None:
    length = len(proxy.speaks.template.encode("word " * 400))
    proxy.play("one", "two")
    much = {"role": "user", "content": "word " * 400 * (40_000 // length)}
    with proxy.client("full") as client:
        said = chat(client, [*ASK]).choices[0].message.model_dump()
        with pytest.raises(openai.BadRequestError) as refused:
            chat(client, [*ASK, said, much])
        assert refused.value.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError):
            chat(client, [much])
    (told,) = proxy.end("full", reward=0.0)
    assert (told["stop"], told["reward_valid"]) == ("context", True)


def test_a_client_that_leaves_ends_its_request_and_may_come_again(proxy: Proxied) -> None:
    proxy.play("one", orders=[Order(fault="stall", turn=0)])
    with proxy.client("leaves") as client:
        with pytest.raises(openai.APITimeoutError):
            chat(client, [*ASK], timeout=1.0)
        until = time.monotonic() + 20
        while not any(each["protocol"] == "abort" for each in proxy.engine.seen()):
            assert time.monotonic() < until, "the engine was never told"
        assert chat(client, [*ASK]).choices[0].message.content == "one"
    (told,) = proxy.end("leaves", reward=1.0)
    assert (told["turns"], told["reward_valid"]) == (1, True)


def test_half_a_request_and_a_foreign_host_change_nothing(proxy: Proxied) -> None:
    host, port = proxy.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n")
        line.sendall(b"Content-Length: 500\r\n\r\n{")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 421")
