# SPDX-License-Identifier: Apache-2.0
"""Bar 6: many token-in-token-out loops: ``python -m nox -s bench -- bar06_agent_loops_550 [550]``.

Every loop sends its whole prompt, takes what was sampled after it, appends that and an observation,
and goes on. Ours is the product's: an `EngineClient` a loop with every check, and the token stream
that refuses what breaks an invariant; once with whole answers, as the peers have them, and once
streaming, as the product does unless told otherwise. The peers do the same turns without checks:
aiohttp with orjson, and httpx, which both encode the whole list of ids at each turn, ask for whole
answers, and read ids and logprobs out of them. All are measured as the peers once were: 550
coroutines in one process; the product runs each loop in a process of its own. The engine is a
process that reads a request's length and sends prepared bytes in vLLM's shape. The ids and logprobs
of every loop are compared. Rounds are interleaved and take the same turns.

Holds when ours makes, streaming, at least 0.8 times the turns a second of aiohttp with orjson and 8
times those of httpx at short prompts, and, with whole answers, twice those of aiohttp with orjson
at prompts of 20,000 tokens; how much it is there when streaming is said beside it.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import multiprocessing
import socket
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from parts.machine import machine, raise_file_limit

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
OF_AIOHTTP, OF_HTTPX, OF_AIOHTTP_LONG = 0.8, 8.0, 2.0
ROUNDS = 11
SAMPLED = 16
"""Tokens a turn: few, so that the client is measured and not the reading of logprobs, which costs
all of them the same."""
OBSERVED = 64
SHORT, LONG = 500, 20_000
"""Tokens of the first prompt."""
TURNS = {SHORT: 8, LONG: 8}
FIRST_ID = 10_000
"""Ids have five digits, as most of a large vocabulary have; the engine counts them by that."""
OFFERED_S = 300.0

type Loop = Callable[[int, int], Awaitable[tuple[list[int], list[float]]]]
"""From its first prompt's length and its turns to all ids and all logprobs."""


def prompt(length: int, of: int = 0) -> list[int]:
    """Of one loop: every loop has ids of its own, as it has documents of its own."""
    return [FIRST_ID + (each * 7919 + of * 31) % 80_000 for each in range(length)]


OBSERVATION = prompt(OBSERVED)
ANSWERED = [FIRST_ID + (each * 104_729) % 80_000 for each in range(SAMPLED)]
LOGPROBS = [-float(np.float32(each % 17 + 0.123456)) for each in range(SAMPLED)]
STOP = ANSWERED[-1]


# --- the engine -----------------------------------------------------------------------------------


def choice(start: int, stop: int) -> dict[str, Any]:
    """As vLLM 0.32 has them."""
    rows = [
        {"token_id": ANSWERED[each], "logprob": LOGPROBS[each], "rank": 1}
        for each in range(start, stop)
    ]
    last = stop == SAMPLED
    return {
        "index": 0,
        "finish_reason": "stop" if last else None,
        "stop_reason": STOP if last else None,
        "token_ids": ANSWERED[start:stop],
        "routed_experts": None,
        "sampling_mask": None,
        "weight_versions": [{"version": "3", "start": 0, "end": SAMPLED}] if last else None,
        "logprobs": {"content": [{**row, "top_logprobs": [row]} for row in rows]},
    }


def usage(length: int) -> dict[str, int]:
    total = length + SAMPLED
    return {"prompt_tokens": length, "total_tokens": total, "completion_tokens": SAMPLED}


def whole(length: int, _echo: bytes) -> bytes:
    body = {
        "request_id": "generate-tokens-r",
        "model": "tiny",
        "created": 0,
        "usage": usage(length),
        "prompt_token_ids": None,
        "output_mode": "tokens",
        "choices": [choice(0, SAMPLED)],
    }
    text = orjson.dumps(body)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n"
    return head.encode() + b"\r\n" + text


def streamed(length: int, echo: bytes) -> bytes:
    """One token, then the others, as an interval of 32 has it."""
    events = [
        {"request_id": "generate-tokens-r", "usage": None, "choices": [choice(start, stop)]}
        for start, stop in pairwise((0, 1, SAMPLED))
    ]
    counts = {"request_id": "generate-tokens-r", "usage": usage(length), "choices": []}
    texts = [*(orjson.dumps(each) for each in (*events, counts)), b"[DONE]"]
    if echo:
        texts[0] = b'{"prompt_token_ids":[' + echo + b"]," + texts[0][1:]
    parts = [b"data: " + each + b"\n\n" for each in texts]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in parts)
    kind = "text/event-stream; charset=utf-8"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
    return head.encode() + chunks + b"0\r\n\r\n"


class Requests(asyncio.Protocol):
    """Counts the prompt by where its list ends, and answers."""

    def __init__(self, known: dict[tuple[bool, int], bytes]) -> None:
        self._known = known

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._begin()

    def _begin(self) -> None:
        self._parts: list[bytes] = []
        self._missing = -1

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        if self._missing < 0:
            text = b"".join(self._parts)
            self._parts = [text]
            end = text.find(b"\r\n\r\n")
            if end < 0:
                return
            self._body, length = end + 4, content_length(text[:end])
            self._missing = self._body + length - len(text)
        else:
            self._missing -= len(data)
        if self._missing <= 0:
            self._transport.write(self._answer(b"".join(self._parts)))
            self._begin()

    def _answer(self, text: bytes) -> bytes:
        if text.startswith(b"GET"):
            return told(text.split(b" ", 2)[1].decode())
        start = text.find(b"[", self._body)
        end = text.find(b"]", start)
        length = (end - start) // 6
        tail = text[end:]
        if length == 0:
            return told("400")
        streams = b'"stream":true' in tail
        if streams and b'"return_token_ids":true' in tail:
            return streamed(length, text[start + 1 : end])
        key = (streams, length)
        if key not in self._known:
            self._known[key] = (streamed if streams else whole)(length, b"")
        return self._known[key]


def content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


def told(path: str) -> bytes:
    said: dict[str, Any] = {
        "/v1/models": {"data": [{"id": "tiny", "max_model_len": 131_072}]},
        "/version": {"version": "0.32.0"},
    }
    status = "200 OK" if path in said else "400 Bad Request" if path == "400" else "404 Not Found"
    text = orjson.dumps(said.get(path, {}))
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n"
    return head.encode() + b"\r\n" + text


def serve(listening: socket.socket) -> None:
    async def run() -> None:
        known: dict[tuple[bool, int], bytes] = {}
        server = await asyncio.get_running_loop().create_server(
            lambda: Requests(known), sock=listening
        )
        await server.serve_forever()

    gc.freeze()
    asyncio.run(run())


# --- ours -----------------------------------------------------------------------------------------


async def ours(
    url: str, count: int, first: int, turns: int, *, stream: bool = False
) -> dict[str, Any]:
    from contextlib import AsyncExitStack

    from envkit.agent.engine import EngineOptions, open_engine
    from envkit.agent.stream import TokenStream
    from envkit.trajectory.types import Sampling

    sampling, stops = Sampling(), (STOP,)

    async def loop(client: Any, stream: Any, name: str) -> None:
        for turn in range(turns):
            sampled = await client.sample(
                stream.prompt,
                max_tokens=SAMPLED,
                stop_ids=stops,
                sampling=sampling,
                request_id=f"{name}.{turn}",
            )
            stream.sampled(sampled, turn)
            stream.tool(OBSERVATION, turn)

    streams: list[Any] = []
    for number in range(count):
        streams.append(TokenStream())
        streams[-1].begin(prompt(first, number))
    async with AsyncExitStack() as stack:
        options = EngineOptions(url=url, vocabulary=100_000, stream=stream)
        clients = [await stack.enter_async_context(open_engine(options)) for _ in range(count)]
        pairs = enumerate(zip(clients, streams, strict=True))
        result = await timed([loop(client, stream, f"t{n}") for n, (client, stream) in pairs])
    built = [each.build() for each in streams]
    result["answers"] = [
        (each.token_ids.tolist(), each.logprobs[each.loss_mask].tolist()) for each in built
    ]
    return result


async def ours_streaming(url: str, count: int, first: int, turns: int) -> dict[str, Any]:
    return await ours(url, count, first, turns, stream=True)


# --- the peers ------------------------------------------------------------------------------------


def body_of(ids: list[int]) -> dict[str, Any]:
    """The same request; the list of ids comes first, as the engine expects it."""
    sampling = {"temperature": 1.0, "max_tokens": SAMPLED, "logprobs": 1, "stop_token_ids": [STOP]}
    return {"token_ids": ids, "model": "tiny", "sampling_params": sampling}


def take(told: dict[str, Any], ids: list[int], logprobs: list[float]) -> None:
    sampled = told["choices"][0]
    ids += sampled["token_ids"]
    logprobs += [each["logprob"] for each in sampled["logprobs"]["content"]]
    ids += OBSERVATION


async def with_aiohttp(url: str, count: int, first: int, turns: int) -> dict[str, Any]:
    import aiohttp

    head = {"Content-Type": "application/json"}
    path = f"{url}/inference/v1/generate"

    async def loop(session: aiohttp.ClientSession, ids: list[int]) -> tuple[list[int], list[float]]:
        logprobs: list[float] = []
        for _ in range(turns):
            body = orjson.dumps(body_of(ids))
            async with session.post(path, data=body, headers=head) as answer:
                take(orjson.loads(await answer.read()), ids, logprobs)
        return ids, logprobs

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        return await timed([loop(session, prompt(first, each)) for each in range(count)])


async def with_httpx(url: str, count: int, first: int, turns: int) -> dict[str, Any]:
    import httpx

    path = f"{url}/inference/v1/generate"

    async def loop(client: httpx.AsyncClient, ids: list[int]) -> tuple[list[int], list[float]]:
        logprobs: list[float] = []
        for _ in range(turns):
            answer = await client.post(path, json=body_of(ids))
            take(answer.json(), ids, logprobs)
        return ids, logprobs

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=OFFERED_S) as client:
        return await timed([loop(client, prompt(first, each)) for each in range(count)])


# --- measuring ------------------------------------------------------------------------------------


async def timed(loops: list[Any]) -> dict[str, Any]:
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    async with asyncio.timeout(OFFERED_S):
        answers = await asyncio.gather(*loops)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "cpu_s": time.process_time() - cpu, "answers": answers}


def digest(answers: list[tuple[list[int], list[float]]]) -> str:
    """Of what all loops ended with; logprobs as the store keeps them."""
    whole = hashlib.sha256()
    for ids, logprobs in answers:
        whole.update(np.array(ids, dtype=np.int32).tobytes())
        whole.update(np.array(logprobs, dtype=np.float32).tobytes())
    return whole.hexdigest()


WHO: dict[str, Callable[[str, int, int, int], Awaitable[dict[str, Any]]]] = {
    "aiohttp": with_aiohttp,
    "ours": ours,
    "streaming": ours_streaming,
    "httpx": with_httpx,
}


INTERLEAVED = ("aiohttp", "ours", "streaming")


def measure(who: str, url: str, count: int, first: int, turns: int) -> dict[str, Any]:
    done: dict[str, Any] = asyncio.run(WHO[who](url, count, first, turns))  # type: ignore[arg-type]
    made = count * turns
    row = {
        "who": who,
        "prompt": first,
        "turns": made,
        "turns_per_s": round(made / done["seconds"], 1),
        "seconds": round(done["seconds"], 3),
        "cpu_s": round(done["cpu_s"], 3),
        "answers": digest(done["answers"]),
    }
    print(
        f"{who:<10}{first:>6} tokens: {made} turns in {row['seconds']:.2f} s,"
        f" {row['turns_per_s']:,.0f} a second, {1e6 * done['cpu_s'] / made:,.0f} us of CPU each",
        flush=True,
    )
    return row


def main(count: int) -> int:
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    engine = multiprocessing.get_context("fork").Process(
        target=serve, args=(listening,), daemon=True
    )
    engine.start()
    listening.close()
    rows: list[dict[str, Any]] = []
    for _ in range(ROUNDS):
        for first in (SHORT, LONG):
            rows += [measure(who, url, count, first, TURNS[first]) for who in INTERLEAVED]
    rows.append(measure("httpx", url, count, SHORT, TURNS[SHORT]))
    engine.kill()
    ratios = {
        "of aiohttp": ratio(rows, "streaming", "aiohttp", SHORT),
        "of httpx": ratio(rows, "streaming", "httpx", SHORT),
        "of aiohttp at 20k": ratio(rows, "ours", "aiohttp", LONG),
        "of aiohttp at 20k, streaming": ratio(rows, "streaming", "aiohttp", LONG),
    }
    least = dict(zip(ratios, (OF_AIOHTTP, OF_HTTPX, OF_AIOHTTP_LONG, 0.0), strict=True))
    breaches = [f"{ratios[each]:.2f} {each}" for each in ratios if ratios[each] < least[each]]
    for first in (SHORT, LONG):
        answers = {row["answers"] for row in rows if row["prompt"] == first}
        breaches += [f"{len(answers)} different answers"] if len(answers) > 1 else []
    result = {
        "what": f"{count} token-in-token-out loops in one process, against aiohttp and httpx",
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "ratios": {name: round(value, 3) for name, value in ratios.items()},
        "breaches": breaches,
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"bar06_agent_loops_{count}.json"
    path.write_text(json.dumps(result) + "\n")
    print(f"{'; '.join(breaches) or 'holds'}: {path.relative_to(ROOT)}")
    print("ours / peer: " + ", ".join(f"{value:.2f} {name}" for name, value in ratios.items()))
    return 1 if breaches else 0


def ratio(rows: list[dict[str, Any]], ours: str, peer: str, first: int) -> float:
    """The median over the rounds of what ours made to what the peer made beside it.

    A peer that was measured once is set beside the last round.
    """

    def rates(who: str) -> list[float]:
        return [r["turns_per_s"] for r in rows if (r["who"], r["prompt"]) == (who, first)]

    theirs = rates(peer)
    pairs = zip(rates(ours)[-len(theirs) :], theirs, strict=True)
    return statistics.median(mine / other for mine, other in pairs)


if __name__ == "__main__":
    raise_file_limit()
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 550))
