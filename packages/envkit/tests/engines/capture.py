# SPDX-License-Identifier: Apache-2.0
"""Record what a real vLLM answers: ``python capture.py http://127.0.0.1:8000 OUT.json``.

The server is to be started with ``--enable-scale-out --logprobs-mode processed_logprobs
--stream-interval 4 --max-model-len 32768`` and ``VLLM_SERVER_DEV_MODE=1``, on a model with at least
300 ids of which 2 is the end of a turn. The file holds each exchange: what was asked, status,
type and body of the answer. ``vllm_0_32.json`` beside this was made so, and the tests of the
engine's client and of the scripted engine are held to it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp

PROMPT = [1, 50, 51, 52]
SAMPLING: dict[str, Any] = {
    "temperature": 1.0,
    "max_tokens": 10,
    "logprobs": 1,
    "stop_token_ids": [2],
    "ignore_eos": True,
    "detokenize": False,
}
GENERATE: dict[str, Any] = {
    "model": "tiny",
    "token_ids": PROMPT,
    "request_id": "r-1",
    "sampling_params": SAMPLING,
}
COMPLETIONS: dict[str, Any] = {
    "model": "tiny",
    "prompt": PROMPT,
    "request_id": "r-1",
    **{key: SAMPLING[key] for key in ("temperature", "max_tokens", "logprobs", "stop_token_ids")},
    "ignore_eos": True,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
}
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


def generate(more: dict[str, Any] | None = None, **sampling: Any) -> tuple[str, dict[str, Any]]:
    body = {**GENERATE, **(more or {}), "sampling_params": {**SAMPLING, **sampling}}
    return "/inference/v1/generate", body


def completions(**more: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/completions", {**COMPLETIONS, **more}


ASKED: dict[str, tuple[str, dict[str, Any] | None]] = {
    "version": ("/version", None),
    "models": ("/v1/models", None),
    "weight_info": ("/weight_info", None),
    "generate": generate(),
    "generate_echo": generate({"return_token_ids": True}),
    "generate_stream": generate({**STREAM, "return_token_ids": True}),
    "generate_stop": generate(logit_bias={"2": 100}),
    "generate_stream_stop": generate(dict(STREAM), logit_bias={"2": 100}),
    "generate_top": generate(logprobs=4, max_tokens=3),
    "generate_warm": generate(logprobs=4, max_tokens=1, temperature=2.0),
    "generate_cold": generate(logprobs=4, max_tokens=1, temperature=0.5),
    "generate_top_k": generate(logprobs=4, max_tokens=1, temperature=2.0, top_k=2),
    "generate_unsure": generate(logprobs=None, max_tokens=2),
    "completions": completions(),
    "completions_stream": completions(**STREAM),
    "completions_stop": completions(logit_bias={"2": 100}),
    "completions_top": completions(logprobs=3, max_tokens=3),
    "completions_bare": completions(return_token_ids=None, max_tokens=2),
    "completions_top_k": completions(logprobs=3, max_tokens=1, temperature=2.0, top_k=2),
    "too_long": generate({"token_ids": [5] * 40_000}),
    "too_long_stream": generate({**STREAM, "token_ids": [5] * 40_000}),
    "unknown_id": generate({"token_ids": [5, 600_000]}),
    "wrong_model": generate({"model": "other"}),
    "wrong_sampling": generate(temperature=-1),
    "too_many_logprobs": generate(logprobs=50),
    "probe": ("/inference/v1/generate", {}),
}


async def exchange(session: aiohttp.ClientSession, base: str, name: str) -> dict[str, Any]:
    path, body = ASKED[name]
    async with session.request("GET" if body is None else "POST", base + path, json=body) as answer:
        raw = await answer.read()
    long = body is not None and len(body.get("token_ids") or body.get("prompt") or ()) > 100
    return {
        "path": path,
        "asked": None if long else body,
        "status": answer.status,
        "type": answer.headers.get("Content-Type", ""),
        "body": raw.decode(),
    }


async def updated(session: aiohttp.ClientSession, base: str) -> dict[str, Any]:
    """A long request, in whose middle the weights change their version twice."""
    path, body = generate(dict(STREAM), max_tokens=60, stream_interval=15, stop_token_ids=[])
    async with session.post(base + path, json=body) as answer:
        seen = b""
        for version in ("7", "8"):
            seen += await answer.content.readuntil(b"\n\n")
            url = f"{base}/update_weight_version"
            async with session.post(url, json={"new_version": version}) as done:
                done.raise_for_status()
        seen += await answer.read()
    kind = "text/event-stream; charset=utf-8"
    return {"path": path, "asked": body, "status": 200, "type": kind, "body": seen.decode()}


async def record(base: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session:
        done = {name: await exchange(session, base, name) for name in ASKED}
        return {**done, "generate_updated": await updated(session, base)}


def main(base: str, out: Path) -> None:
    done = asyncio.run(record(base))
    out.write_text(json.dumps(done, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
