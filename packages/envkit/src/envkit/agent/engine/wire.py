# SPDX-License-Identifier: Apache-2.0
"""The two protocols that speak token ids: how each is asked, and what of its answers is read.

A body is the prompt's text, which is kept encoded and only grows, and a few fields after it: 20,000
ids cost no copy and not 20,000 conversions. An engine that says the prompt back is compared by
those same bytes, and they are cut out before the rest is read.

Sources: ``vllm/entrypoints/scale_out/token_in_token_out/protocol.py`` and
``vllm/entrypoints/openai/completion/protocol.py`` of vLLM 0.32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from envkit.agent.engine.answer import Answer
from envkit.agent.engine.asked import Asked, shaping
from envkit.agent.engine.options import EngineOptions
from envkit.trajectory.types import Sampling

_ECHO: Final = b'"prompt_token_ids":['
_TOKEN: Final = "token_id:"


class Generate:
    """``/inference/v1/generate``, which tells the weight version of every token."""

    name: Final = "generate"
    path: Final = "/inference/v1/generate"
    tells_versions: Final = True

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._echoed = False
        self._tail = Tail()

    def body(self, asked: Asked, model: str, name: str, salt: str = "") -> Body:
        """The request, under a name of its own at each try.

        The prompt is said back only once: after that, its length will do.
        """
        also = (model, self._echoed, salt)
        tail = self._tail.of(asked, also, lambda: self._fields(asked, model, salt))
        return _with_prompt(b'{"token_ids":[', asked, name, tail)

    def _fields(self, asked: Asked, model: str, salt: str) -> dict[str, Any]:
        return {
            "model": model,
            "sampling_params": {
                **_common(asked),
                "logprobs": asked.sampling.top_logprobs + 1,
                "detokenize": False,
                **_interval(self._options),
            },
            "return_token_ids": not self._echoed,
            **_streaming(self._options, salt),
        }

    def aborted_as(self, request_id: str) -> str:
        """What the engine calls the request."""
        return f"generate-tokens-{request_id}"

    def read(self, payloads: Sequence[bytes], asked: Asked) -> Answer:
        """What the payloads of one answer say. Raises what is raised by what is no such answer:
        AttributeError, KeyError, TypeError, ValueError."""
        answer = Answer()
        for told in _events(answer, payloads, asked):
            _add_counts(answer, told)
            _add_echo(answer, told, asked)
            for choice in told["choices"]:
                _add_choice(answer, choice)
                if (spans := choice.get("weight_versions")) is not None:
                    answer.spans = spans
                self._add_logprobs(answer, choice, asked.sampling)
        self._echoed |= answer.prompt_same is True
        return answer

    @staticmethod
    def _add_logprobs(answer: Answer, choice: dict[str, Any], sampling: Sampling) -> None:
        logprobs = choice.get("logprobs")
        content = None if logprobs is None else logprobs["content"]
        if content is None:
            answer.logprobs_missing |= bool(choice.get("token_ids"))
            return
        answer.logprobs += [each["logprob"] for each in content]
        answer.named += [each["token_id"] for each in content]
        if sampling.top_logprobs:
            answer.alternatives += [
                [(each["token_id"], each["logprob"]) for each in row["top_logprobs"]]
                for row in content
            ]


class Completions:
    """``/v1/completions`` with ids for a prompt."""

    name: Final = "completions"
    path: Final = "/v1/completions"
    tells_versions: Final = False

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._tail = Tail()

    def body(self, asked: Asked, model: str, name: str, salt: str = "") -> Body:
        """The request, under a name of its own at each try."""
        tail = self._tail.of(asked, (model, salt), lambda: self._fields(asked, model, salt))
        return _with_prompt(b'{"prompt":[', asked, name, tail)

    def _fields(self, asked: Asked, model: str, salt: str) -> dict[str, Any]:
        return {
            "model": model,
            **_common(asked),
            "logprobs": asked.sampling.top_logprobs,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            "skip_special_tokens": False,
            **_streaming(self._options, salt),
            **_interval(self._options),
        }

    def aborted_as(self, request_id: str) -> str:
        """What the engine calls the request."""
        return f"cmpl-{request_id}-0"

    def read(self, payloads: Sequence[bytes], asked: Asked) -> Answer:
        """What the payloads of one answer say. Raises what is raised by what is no such answer:
        AttributeError, KeyError, TypeError, ValueError."""
        answer = Answer()
        for told in _events(answer, payloads, asked):
            _add_counts(answer, told)
            for choice in told["choices"]:
                _add_echo(answer, choice, asked)
                _add_choice(answer, choice)
                self._add_logprobs(answer, choice, asked.sampling)
        return answer

    @staticmethod
    def _add_logprobs(answer: Answer, choice: dict[str, Any], sampling: Sampling) -> None:
        logprobs = choice.get("logprobs")
        if logprobs is None:
            answer.logprobs_missing |= bool(choice.get("token_ids"))
            return
        answer.logprobs += logprobs["token_logprobs"]
        answer.named += [_id_of(each) for each in logprobs["tokens"]]
        if sampling.top_logprobs:
            tables: list[dict[str, float]] = logprobs["top_logprobs"]
            answer.alternatives += [
                [(_id_of(each), value) for each, value in table.items()] for table in tables
            ]


type Wire = Generate | Completions
type Body = tuple[bytes, bytearray, bytes]
"""Parts of a request's body. The middle one is the prompt's own text, which is not copied."""


class Tail:
    """What follows the prompt and the request's name: the same from turn to turn, so kept."""

    __slots__ = ("_key", "_text")

    def __init__(self) -> None:
        self._key: object = None
        self._text = b""

    def of(self, asked: Asked, also: tuple[object, ...], fields: Callable[[], object]) -> bytes:
        """The text of ``fields``, which depend on what is asked and on ``also``."""
        key = (asked.max_tokens, tuple(asked.stop_ids), asked.sampling, also)
        if key != self._key:
            self._key, self._text = key, orjson.dumps(fields())[1:]
        return self._text


def _common(asked: Asked) -> dict[str, Any]:
    return {
        **shaping(asked.sampling),
        "max_tokens": asked.max_tokens,
        "stop_token_ids": list(asked.stop_ids),
        "ignore_eos": True,
    }


def _streaming(options: EngineOptions, salt: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if options.stream:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    if salt:
        fields["cache_salt"] = salt
    return fields


def _interval(options: EngineOptions) -> dict[str, Any]:
    return {"stream_interval": options.stream_interval} if options.stream else {}


def _with_prompt(head: bytes, asked: Asked, name: str, tail: bytes) -> Body:
    return head, asked.prompt.text, b'],"request_id":%b,%b' % (orjson.dumps(name), tail)


def _events(answer: Answer, payloads: Sequence[bytes], asked: Asked) -> list[dict[str, Any]]:
    """All of them in one reading; the first is the one that may hold the prompt."""
    first, *others = payloads
    whole = b",".join((_without_echo(answer, first, asked), *others))
    return orjson.loads(b"[%b]" % whole)


def _without_echo(answer: Answer, payload: bytes, asked: Asked) -> bytes:
    """The payload without the prompt, where it is said back byte for byte."""
    at = payload.find(_ECHO)
    if at < 0:
        return payload
    start = at + len(_ECHO)
    end = start + len(asked.prompt.text)
    if not (payload.startswith(asked.prompt.text, start) and payload[end : end + 1] == b"]"):
        return payload
    answer.prompt_same = True
    return payload[: start - 1] + b"null" + payload[end + 1 :]


def _add_echo(answer: Answer, told: dict[str, Any], asked: Asked) -> None:
    if (said := told.get("prompt_token_ids")) is not None:
        answer.prompt_same = said == list(asked.prompt.ids)


def _add_counts(answer: Answer, told: dict[str, Any]) -> None:
    if (usage := told.get("usage")) is not None:
        answer.prompt_tokens = int(usage["prompt_tokens"])
        answer.sampled_tokens = int(usage["completion_tokens"])
    if (metrics := told.get("metrics")) is not None:
        queued = metrics.get("queue_time_ms")
        answer.queue_s = None if queued is None else float(queued) / 1000.0


def _add_choice(answer: Answer, choice: dict[str, Any]) -> None:
    ids = choice.get("token_ids")
    if ids is None:
        answer.ids_missing |= choice.get("finish_reason") not in (None, "abort")
    else:
        answer.ids += ids
    if (finish := choice.get("finish_reason")) is not None:
        answer.finish = finish


def _id_of(token: str) -> int:
    """The id in ``token_id:7``; -1 where the engine gives text instead."""
    return int(token[len(_TOKEN) :]) if token.startswith(_TOKEN) else -1
