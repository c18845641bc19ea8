# SPDX-License-Identifier: Apache-2.0
"""What an engine says no with, by whose doing and whether to ask again."""

import pytest

from envkit.agent.engine.events import Events
from envkit.agent.engine.refusal import error_in, refusal
from envkit.fault import (
    EngineBusy,
    EngineFailed,
    EngineRefused,
    EnvkitError,
    Owner,
    Phase,
    PromptTooLong,
    classify,
)

from .recorded import RECORDED


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("too_long", PromptTooLong),
        ("unknown_id", EngineRefused),
        ("wrong_model", EngineRefused),
        ("wrong_sampling", EngineRefused),
        ("too_many_logprobs", EngineRefused),
        ("probe", EngineRefused),
    ],
)
def test_recorded_refusals_of_vllm(name: str, error: type[EnvkitError]) -> None:
    said = refusal(RECORDED[name]["status"], RECORDED[name]["body"].encode())
    assert type(said) is error
    assert not classify(said, Phase.ACT).policy.retry


def test_a_refusal_inside_a_stream_is_the_same_one() -> None:
    event, _ = Events().feed(RECORDED["too_long_stream"]["body"].encode())
    said = error_in(event)
    assert type(said) is PromptTooLong
    assert classify(said, Phase.ACT).owner is Owner.HARNESS


@pytest.mark.parametrize(
    ("status", "error", "retry"),
    [
        (429, EngineBusy, True),
        (503, EngineBusy, True),
        (408, EngineBusy, True),
        (500, EngineFailed, True),
        (502, EngineFailed, True),
        (401, EngineRefused, False),
        (302, EngineRefused, False),
    ],
)
def test_statuses(status: int, error: type[EnvkitError], retry: bool) -> None:
    said = refusal(status, b"\xff<html> it\n is  so</html>")
    assert type(said) is error
    assert classify(said, Phase.ACT).policy.retry is retry
    assert f"HTTP {status}: \ufffd<html> it is so</html>" == str(said)


@pytest.mark.parametrize(("header", "seconds"), [("2.5", 2.5), ("", 0.0), ("Mon, 30 Nov", 0.0)])
def test_the_engines_own_word_for_the_next_try_is_kept(header: str, seconds: float) -> None:
    said = refusal(429, b"", header)
    assert isinstance(said, EngineBusy)
    assert said.retry_after_s == seconds


def test_tokens_are_no_errors() -> None:
    assert error_in(b'{"choices":[{"finish_reason":"error"}]}') is None
