# SPDX-License-Identifier: Apache-2.0
"""A scripted engine on loopback: vLLM's protocol, answers by a script, faults by order.

It runs as ``python scripted.py`` in a process of its own, reads its `Script` as JSON from its
standard input, prints its port, and serves ``/inference/v1/generate`` and ``/v1/completions``,
streamed or not, byte for byte as vLLM 0.32 does (`test_scripted.py` holds it to a recording).

Which turn of the script answers a request follows from its prompt: one that goes on after an
answered prompt *and* its answer gets the next turn, any other the first, and the same prompt the
same turn again. So any number of loops share one engine, retries are answered alike, and a stream
that is not append-only falls back to the first turn. Past the last turn, the last is repeated.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web

FLOOR = -9999.0
"""What vLLM says in place of minus infinity and not-a-number."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one request is answered with."""

    ids: Sequence[int]
    finish: str | None = None
    """None: ``stop`` where the last id is one of the request's stop ids, else ``length``."""
    logprobs: Sequence[float] | None = None
    """None: those of the engine's own distribution."""
    top: Sequence[Sequence[Sequence[float]]] | None = None
    """Of each token its candidates ``[id, logprob, rank]``, the sampled one first."""
    versions: Sequence[tuple[str, int]] | None = None
    """``[version, start]`` of each span; None: the engine's own version."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """A fault to bring about."""

    fault: str
    """A key of `WIRE` or `EDITS`."""
    turn: int | None = None
    """Only for requests of this turn; None: of any."""
    times: int = 1
    """For so many of them; 0: always."""
    after: int = 1
    """Of a stream: how many events come before it."""
    seconds: float = 0.0
    """Of ``busy``: the Retry-After. Of ``slow``: the wait before each event."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """All that an engine does."""

    turns: Sequence[Turn] = ()
    function: str = ""
    """``FILE.py:NAME`` in place of turns: from the prompt's ids and the request to a turn's
    fields."""
    orders: Sequence[Order] = ()
    model: str = "tiny"
    context: int = 32_768
    vocabulary: int = 512
    version: str = "default"
    raw: bool = False
    """Logprobs before temperature and truncation, as vLLM gives unless told otherwise."""
    protocols: Sequence[str] = ("generate", "completions")
    streams: bool = True
    """False: answers whole, whatever was asked."""
    interval: int = 4
    """Tokens an event of a stream, but for its first; a request may ask for more."""
    weight_info: bool = True
    """Whether it tells its weight version, as vLLM in development mode does."""
    port: int = 0
    weights: str = ""
    """Directory that it names as its model's root; empty for the name of its model."""


# --- the distribution -----------------------------------------------------------------------------


class Distribution:
    """One next-token distribution for every position."""

    def __init__(self, vocabulary: int, *, raw: bool) -> None:
        self._logits = -np.log1p((np.arange(vocabulary) * 37) % vocabulary)  # as words are: Zipf
        self._raw = raw
        self._known: dict[tuple[float, int], np.ndarray] = {}

    def logprobs(self, sampling: Mapping[str, Any]) -> np.ndarray:
        temperature = float(sampling.get("temperature") or 1.0)
        top_k = int(sampling.get("top_k") or 0)
        key = (1.0, 0) if self._raw else (temperature, top_k)
        if key not in self._known:
            self._known[key] = self._compute(*key)
        return self._known[key]

    def _compute(self, temperature: float, top_k: int) -> np.ndarray:
        logits = self._logits / temperature
        if top_k > 0:
            kept = np.argsort(-logits, kind="stable")[:top_k]
            masked = np.full_like(logits, -np.inf)
            masked[kept] = logits[kept]
            logits = masked
        with np.errstate(divide="ignore"):
            return np.float32(logits - np.log(np.exp(logits).sum())).astype(float)

    def candidates(self, sampled: int, count: int, table: np.ndarray) -> list[list[float]]:
        """The sampled one first, then the best others, as many as were asked for."""
        order = np.argsort(-table, kind="stable")
        best = [int(each) for each in order[: count + 1] if each != sampled]
        rank = int((table > table[sampled]).sum()) + 1
        rows = [[sampled, _floored(table[sampled]), rank]]
        ranks = {int(each): place + 1 for place, each in enumerate(order[: count + 1])}
        return rows + [[each, _floored(table[each]), ranks[each]] for each in best]


def _floored(logprob: float) -> float:
    return max(float(logprob), FLOOR)


# --- what was sampled -----------------------------------------------------------------------------


@dataclass
class Sample:
    """An answer before it takes the shape of a protocol; faults edit it."""

    ids: list[int] | None
    rows: list[list[list[float]]] | None
    """Candidates of each token, the sampled one first."""
    finish: str
    stop: int | None
    spans: list[dict[str, Any]] | None
    prompt: list[int]
    count: int = 0
    """Completion tokens, as it counts them."""


def draw(engine: Engine, turn: Turn, asked: Asked) -> Sample:
    most = asked.max_tokens
    table = engine.distribution.logprobs(asked.sampling)
    ids = [int(each) for each in turn.ids[:most]]
    if turn.top is None:
        ids = [_possible(each, table) for each in ids]
    finish = turn.finish or ("stop" if ids and ids[-1] in asked.stop_ids else "length")
    if len(turn.ids) > most:
        finish = "length"
    rows = None
    if asked.logprobs is not None:
        rows = [_row(engine, turn, place, each, table, asked) for place, each in enumerate(ids)]
    versions = [each for each in turn.versions or () if each[1] < len(ids)]
    versions = versions or [(engine.version, 0)]
    ends = [start for _, start in versions[1:]] + [len(ids)]
    spans = [
        {"version": version, "start": start, "end": end}
        for (version, start), end in zip(versions, ends, strict=True)
    ]
    stop = ids[-1] if finish == "stop" and ids else None
    return Sample(
        ids=ids,
        rows=rows,
        finish=finish,
        stop=stop,
        spans=spans,
        prompt=asked.prompt,
        count=len(ids),
    )


def _possible(scripted: int, table: np.ndarray) -> int:
    """What top-k leaves out cannot be sampled: the likeliest is, in its place."""
    known = scripted < len(table)
    return scripted if known and np.isfinite(table[scripted]) else int(table.argmax())


def _row(
    engine: Engine, turn: Turn, place: int, sampled: int, table: np.ndarray, asked: Asked
) -> list[list[float]]:
    if turn.top is not None:
        return [list(each) for each in turn.top[place]]
    wanted = asked.logprobs if asked.protocol == "completions" else max(asked.logprobs, 1) - 1
    row = engine.distribution.candidates(sampled, wanted, table)
    if turn.logprobs is not None:
        row[0][1] = turn.logprobs[place]
    return row[: wanted + 1]


# --- faults of what it says -----------------------------------------------------------------------


def _cut_rows(sample: Sample) -> None:
    assert sample.rows is not None
    del sample.rows[-1]


def _set_logprob(value: float | None) -> Any:
    def edit(sample: Sample) -> None:
        assert sample.rows is not None
        sample.rows[-1][0][1] = value  # type: ignore[call-overload]

    return edit


def _other_token(sample: Sample) -> None:
    assert sample.rows is not None
    sample.rows[-1][0][0] += 1


def _gap(sample: Sample) -> None:
    assert sample.spans is not None
    sample.spans[-1]["end"] -= 1


def _set(**fields: Any) -> Any:
    def edit(sample: Sample) -> None:
        for name, value in fields.items():
            setattr(sample, name, value)

    return edit


def _foreign_id(sample: Sample) -> None:
    assert sample.ids is not None
    assert sample.rows is not None
    sample.ids[-1] = sample.rows[-1][0][0] = 9_999_999


def _altered(sample: Sample) -> None:
    sample.prompt = [*sample.prompt[:-1], sample.prompt[-1] + 1]


def _longer(sample: Sample) -> None:
    assert sample.ids is not None
    assert sample.rows is not None
    sample.ids += sample.ids
    sample.rows += sample.rows
    sample.finish = "length"
    sample.spans = None
    sample.count = len(sample.ids)


def _named(sample: Sample) -> None:
    assert sample.spans is not None
    sample.spans[-1]["version"] = "nightly"


def _no_end(sample: Sample) -> None:
    assert sample.spans is not None
    del sample.spans[-1]["end"]


def _vast_candidate(sample: Sample) -> None:
    assert sample.rows is not None
    sample.rows[-1][1][0] = 1 << 40


EDITS: dict[str, Any] = {
    "no ids": _set(ids=None),
    "no logprobs": _set(rows=None),
    "unequal logprobs": _cut_rows,
    "spans with a gap": _gap,
    "no spans": _set(spans=None),
    "spans without ends": _no_end,
    "vast candidate": _vast_candidate,
    "another token": _other_token,
    "foreign id": _foreign_id,
    "altered prompt": _altered,
    "null logprob": _set_logprob(None),
    "positive logprob": _set_logprob(0.25),
    "floored logprob": _set_logprob(FLOOR),
    "wrong stop": _set(finish="stop"),
    "repetition": _set(finish="repetition"),
    "too many": _longer,
    "abort": _set(finish="abort"),
    "named version": _named,
    "miscounted": _set(count=1),
}
"""Whole answers that are wrong, by name."""


# --- requests -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request, whichever protocol it came by."""

    protocol: str
    body: Mapping[str, Any]
    prompt: list[int]
    sampling: Mapping[str, Any]

    @property
    def max_tokens(self) -> int:
        return int(self.sampling.get("max_tokens") or 16)

    @property
    def logprobs(self) -> Any:
        return self.sampling.get("logprobs")

    @property
    def stop_ids(self) -> Sequence[int]:
        return self.sampling.get("stop_token_ids") or ()

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def usage(self) -> bool:
        return bool((self.body.get("stream_options") or {}).get("include_usage"))

    @property
    def echo(self) -> bool:
        return bool(self.body.get("return_token_ids"))

    @property
    def name(self) -> str:
        """As the engine calls the request; aborts go by it, for completions with ``-0`` added."""
        given = self.body.get("request_id", "none")
        return f"generate-tokens-{given}" if self.protocol == "generate" else f"cmpl-{given}"

    @property
    def aborted_as(self) -> str:
        return self.name if self.protocol == "generate" else f"{self.name}-0"


def as_asked(protocol: str, body: Mapping[str, Any]) -> Asked:
    whole = protocol == "completions"
    return Asked(
        protocol=protocol,
        body=body,
        prompt=[int(each) for each in body["prompt" if whole else "token_ids"]],
        sampling=body if whole else body["sampling_params"],
    )


# --- the shapes of the two protocols --------------------------------------------------------------


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def usage_of(sample: Sample, prompt: int, *, whole: bool) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "total_tokens": prompt + sample.count,
        "completion_tokens": sample.count,
    }
    return counts | (dict.fromkeys(_DETAILS) if whole else {})


_DETAILS = ("prompt_tokens_details", "completion_tokens_details")


def generate_logprobs(rows: Sequence[Sequence[Sequence[float]]] | None) -> Any:
    if rows is None:
        return None
    entries = [
        [{"token_id": each[0], "logprob": each[1], "rank": each[2]} for each in row] for row in rows
    ]
    return {"content": [{**row[0], "top_logprobs": row} for row in entries]}


def generate_choice(sample: Sample, start: int, stop: int, *, last: bool) -> dict[str, Any]:
    rows = None if sample.rows is None else sample.rows[start:stop]
    return {
        "index": 0,
        "finish_reason": sample.finish if last else None,
        "stop_reason": sample.stop if last else None,
        "token_ids": None if sample.ids is None else sample.ids[start:stop],
        "routed_experts": None,
        "sampling_mask": None,
        "weight_versions": sample.spans if last else None,
        "logprobs": generate_logprobs(rows),
    }


def generate_whole(engine: Engine, asked: Asked, sample: Sample) -> bytes:
    fields: dict[str, Any] = {
        "request_id": asked.name,
        "model": engine.script.model,
        "created": int(time.time()),
        "usage": usage_of(sample, len(asked.prompt), whole=True),
        **dict.fromkeys(("prompt_logprobs", "prompt_token_id_logprobs")),
        "prompt_token_ids": sample.prompt if asked.echo else None,
        **dict.fromkeys(("mm_placeholders", "metrics", "kv_transfer_params", "ec_transfer_params")),
        "output_mode": "tokens",
        "choices": [generate_choice(sample, 0, _length(sample), last=True)],
    }
    return dumps(fields)


def generate_events(engine: Engine, asked: Asked, sample: Sample) -> Iterator[bytes]:
    for start, stop in slices(engine, asked, _length(sample)):
        last = stop >= _length(sample)
        fields: dict[str, Any] = {"request_id": asked.name, "usage": None}
        if asked.echo and start == 0:
            fields["prompt_token_ids"] = sample.prompt
        choice = generate_choice(sample, start, stop, last=last)
        yield dumps({**fields, "output_mode": "tokens", "choices": [choice]})
    if asked.usage:
        counts = usage_of(sample, len(asked.prompt), whole=False)
        usage = {"request_id": asked.name, "usage": counts, "output_mode": "tokens", "choices": []}
        yield dumps(usage)


def completions_logprobs(rows: Sequence[Sequence[Sequence[float]]] | None, offset: int) -> Any:
    if rows is None:
        return None
    names = [f"token_id:{row[0][0]:.0f}" for row in rows]
    offsets = [offset + sum(map(len, names[:place])) for place in range(len(names))]
    return {
        "text_offset": offsets,
        "token_logprobs": [row[0][1] for row in rows],
        "tokens": names,
        "top_logprobs": [{f"token_id:{each[0]:.0f}": each[1] for each in row} for row in rows],
    }


def completions_choice(
    sample: Sample, asked: Asked, start: int, stop: int, *, last: bool
) -> dict[str, Any]:
    rows = sample.rows or []
    before = sum(len(f"token_id:{row[0][0]:.0f}") for row in rows[:start])
    shown = None if sample.rows is None else rows[start:stop]
    return {
        "index": 0,
        "text": "",
        "logprobs": completions_logprobs(shown, before),
        "finish_reason": sample.finish if last else None,
        "stop_reason": sample.stop if last else None,
    }


def completions_whole(engine: Engine, asked: Asked, sample: Sample) -> bytes:
    ids = sample.ids if asked.echo else None
    choice = completions_choice(sample, asked, 0, _length(sample), last=True) | {
        "token_ids": ids,
        "prompt_logprobs": None,
        "prompt_token_ids": sample.prompt if asked.echo else None,
        "routed_experts": None,
    }
    fields: dict[str, Any] = {
        "id": asked.name,
        "object": "text_completion",
        "created": int(time.time()),
        "model": engine.script.model,
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage_of(sample, len(asked.prompt), whole=True),
        **dict.fromkeys(("kv_transfer_params", "ec_transfer_params", "metrics")),
    }
    return dumps(fields)


FINGERPRINT = "vllm-0.32.0-998d91c7"


def completions_events(engine: Engine, asked: Asked, sample: Sample) -> Iterator[bytes]:
    head = {
        "id": asked.name,
        "object": "text_completion",
        "created": int(time.time()),
        "model": engine.script.model,
    }
    for start, stop in slices(engine, asked, _length(sample)):
        last = stop >= _length(sample)
        ids = None if sample.ids is None or not asked.echo else sample.ids[start:stop]
        choice = completions_choice(sample, asked, start, stop, last=last) | {
            "prompt_token_ids": sample.prompt if asked.echo and start == 0 else None,
            "token_ids": ids,
        }
        mark = {"system_fingerprint": FINGERPRINT} if last and not asked.usage else {}
        yield dumps({**head, "choices": [choice], **mark})
    if asked.usage:
        counts = usage_of(sample, len(asked.prompt), whole=False)
        mark = {"system_fingerprint": FINGERPRINT}
        yield dumps({**head, "choices": [], "usage": counts, **mark})


def slices(engine: Engine, asked: Asked, count: int) -> Iterator[tuple[int, int]]:
    """One token, then as many as the interval says; the last event brings the end."""
    interval = max(engine.script.interval, int(asked.sampling.get("stream_interval") or 1))
    starts = [0, *range(1, max(count, 1), interval)]
    yield from zip(starts, [*starts[1:], max(count, 1)], strict=True)


def _length(sample: Sample) -> int:
    return len(sample.ids if sample.ids is not None else sample.rows or ())


WHOLE = {"generate": generate_whole, "completions": completions_whole}
EVENTS = {"generate": generate_events, "completions": completions_events}


# --- the server -----------------------------------------------------------------------------------

WIRE = (
    *("busy", "unavailable", "failed", "refused", "overflow", "update"),
    *("silent", "hang up", "garbage", "not json", "wrong json", "html"),
    *("stall", "slow", "drop", "die", "error event", "garbage event"),
)
"""Faults of the transport; those of the last row strike inside a stream, after so many events.
``update`` is none: the weights get their next version while the request is answered."""

_STATUS = {"busy": 429, "unavailable": 503, "failed": 500, "refused": 400, "overflow": 400}
_SAYS = {
    "overflow": "The decoder prompt (length 40000) is longer than the maximum model length of"
    " 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "failed": "EngineCore encountered an issue. See stack trace (above) for the root cause.",
}
_BODIES = {
    "not json": (b"{not json", "application/json"),
    "wrong json": (b'[{"hello":"world"}]', "application/json"),
    "html": (b"<html>It works!</html>", "text/html"),
}


class Engine:
    """What is known of the script's course."""

    def __init__(self, script: Script) -> None:
        self.load(script)
        self.running: dict[str, asyncio.Future[None]] = {}

    def load(self, script: Script) -> None:
        """Begin with another script."""
        self.script = script
        self.version = script.version
        self.distribution = Distribution(script.vocabulary, raw=script.raw)
        self.orders = list(script.orders)
        self.struck: dict[int, int] = {}
        """How often each order was carried out."""
        self.known: dict[int, dict[int, int]] = {}
        """By length, by hash of so many ids, which turn comes after them."""
        self.seen: list[dict[str, Any]] = []

    def turn_of(self, prompt: list[int]) -> int:
        for length in sorted(self.known, reverse=True):
            turn = self.known[length].get(hash(tuple(prompt[:length])))
            if length <= len(prompt) and turn is not None:
                return turn
        return 0

    def remember(self, prompt: list[int], ids: Sequence[int], turn: int) -> None:
        whole = (*prompt, *ids)
        self.known.setdefault(len(whole), {})[hash(whole)] = turn + 1

    def script_turn(self, number: int, asked: Asked) -> Turn:
        if self.script.function:
            return Turn(**function_of(self.script.function)(asked.prompt, dict(asked.body)))
        return self.script.turns[min(number, len(self.script.turns) - 1)]

    def order_for(self, turn: int) -> Order | None:
        for place, order in enumerate(self.orders):
            due = order.times == 0 or self.struck.get(place, 0) < order.times
            if due and order.turn in (None, turn):
                self.struck[place] = self.struck.get(place, 0) + 1
                return order
        return None


_FUNCTIONS: dict[str, Any] = {}


def function_of(path: str) -> Any:
    if path not in _FUNCTIONS:
        file, _, name = path.rpartition(":")
        spec = importlib.util.spec_from_file_location("scripted_function", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _FUNCTIONS[path] = getattr(module, name)
    return _FUNCTIONS[path]


async def sample(engine: Engine, protocol: str, request: web.Request) -> web.StreamResponse:
    if protocol not in engine.script.protocols:
        return error(403, "Scale-out endpoints are disabled.", kind="PermissionDeniedError")
    body = await request.json()
    if not body.get("token_ids") and not body.get("prompt"):
        return error(400, "1 validation error: Field required", kind="Bad Request")
    asked = as_asked(protocol, body)
    number = engine.turn_of(asked.prompt)
    order = engine.order_for(number)
    note = {
        "protocol": protocol,
        "turn": number,
        "fault": order.fault if order else None,
        "port": request.transport.get_extra_info("peername")[1] if request.transport else 0,
        "body": body,
        "ended": "dropped",
        "events": 0,
    }
    engine.seen.append(note)
    wrong = refused(engine, asked)
    if wrong is not None and not (asked.streams and engine.script.streams):
        note["ended"] = "refused"
        return wrong
    done = await answer(engine, asked, number, order, request, note, wrong)
    if note["ended"] == "dropped":
        note["ended"] = "whole"
    return done


def refused(engine: Engine, asked: Asked) -> web.Response | None:
    model = asked.body.get("model")
    if model not in (None, engine.script.model):
        valid = f"Valid aliases: {engine.script.model}."
        message = f"The model `{model}` does not exist. {valid}"
        return error(404, message, kind="NotFoundError", param="model")
    if len(asked.prompt) > engine.script.context:
        message = _SAYS["overflow"].replace("40000", str(len(asked.prompt)))
        return error(400, message.replace("32768", str(engine.script.context)))
    return None


def error(
    status: int, message: str, *, kind: str = "BadRequestError", param: str | None = None
) -> web.Response:
    body = {"error": {"message": message, "type": kind, "param": param, "code": status}}
    return web.Response(status=status, body=dumps(body), content_type="application/json")


async def answer(
    engine: Engine,
    asked: Asked,
    number: int,
    order: Order | None,
    request: web.Request,
    note: dict[str, Any],
    wrong: web.Response | None,
) -> web.StreamResponse:
    fault = order.fault if order else ""
    early = await before_answering(fault, order, request)
    if early is not None:
        return early
    done = draw(engine, engine.script_turn(number, asked), asked)
    ids = list(done.ids or ())
    if fault == "update":
        engine.version = str(int(engine.version) + 1)
    if fault in EDITS:
        EDITS[fault](done)
    else:
        engine.remember(asked.prompt, ids, number)
    if not (asked.streams and engine.script.streams):
        body = WHOLE[asked.protocol](engine, asked, done)
        return web.Response(body=body, content_type="application/json")
    events: Iterator[bytes] = EVENTS[asked.protocol](engine, asked, done)
    if wrong is not None:
        assert isinstance(wrong.body, bytes)
        events = iter([json.dumps(json.loads(wrong.body)).encode()])
    return await stream(engine, asked, events, order, request, note)


async def before_answering(
    fault: str, order: Order | None, request: web.Request
) -> web.Response | None:
    if fault in _STATUS:
        done = error(_STATUS[fault], _SAYS.get(fault, f"scripted: {fault}"))
        if order is not None and order.seconds:
            done.headers["Retry-After"] = f"{order.seconds:g}"
        return done
    if fault in _BODIES:
        body, kind = _BODIES[fault]
        return web.Response(body=body, content_type=kind)
    if fault == "silent":
        await asyncio.get_running_loop().create_future()
    if fault in ("hang up", "garbage"):
        assert request.transport is not None
        if fault == "garbage":
            request.transport.write(b"\x00\xffSSH-2.0-not-http\r\n\r\n")
        request.transport.close()
    return None


async def stream(
    engine: Engine,
    asked: Asked,
    events: Iterator[bytes],
    order: Order | None,
    request: web.Request,
    note: dict[str, Any],
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    aborted = asyncio.get_running_loop().create_future()
    engine.running[asked.aborted_as] = aborted
    try:
        for number, event in enumerate(events):
            if aborted.done():
                note["ended"] = "aborted"
                event = dumps({"choices": [{"index": 0, "finish_reason": "abort"}]})
            if order is not None and not await mid_stream(order, number, response, request):
                return response
            await response.write(b"data: " + event + b"\n\n")
            note["events"] += 1
            if note["ended"] == "aborted":
                break
        await response.write(b"data: [DONE]\n\n")
    finally:
        if aborted.done():
            note["ended"] = "aborted"
        engine.running.pop(asked.aborted_as, None)
    return response


async def mid_stream(
    order: Order, number: int, response: web.StreamResponse, request: web.Request
) -> bool:
    """Whether the stream goes on."""
    if order.fault == "slow":
        await asyncio.sleep(order.seconds)
    if number != order.after:
        return True
    match order.fault:
        case "stall":
            await asyncio.get_running_loop().create_future()
        case "drop":
            assert request.transport is not None
            request.transport.abort()
            return False
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "error event":
            said = {"message": _SAYS["failed"], "type": "InternalServerError", "param": None}
            event = json.dumps({"error": {**said, "code": 500}}).encode()
            await response.write(b"data: " + event + b"\n\ndata: [DONE]\n\n")
            return False
        case "garbage event":
            await response.write(b'data: {"choices":[{"ind\xff\x00\n\n')
        case _:
            pass
    return True


async def abort(engine: Engine, request: web.Request) -> web.Response:
    for name in (await request.json())["request_ids"]:
        engine.seen.append({"protocol": "abort", "name": name})
        if (running := engine.running.get(name)) is not None and not running.done():
            running.set_result(None)
    return web.Response()


def models(script: Script) -> dict[str, Any]:
    allowed = {
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
    }
    whose = {"organization": "*", "group": None, "is_blocking": False}
    permission = {"id": "modelperm-0", "object": "model_permission", "created": 0}
    model = {
        "id": script.model,
        "object": "model",
        "created": 0,
        "owned_by": "vllm",
        "root": script.weights or script.model,
        "parent": None,
        "max_model_len": script.context,
        "permission": [{**permission, **allowed, **whose}],
    }
    return {"object": "list", "data": [model]}


def build(script: Script) -> web.Application:
    engine = Engine(script)

    def posted(protocol: str) -> Any:
        return lambda request: sample(engine, protocol, request)

    async def say(request: web.Request) -> web.Response:
        path = request.path
        if path == "/weight_info" and not engine.script.weight_info:
            return error(404, "Not Found", kind="NotFoundError")
        said = {
            "/version": {"version": "0.32.0"},
            "/v1/models": models(engine.script),
            "/weight_info": {"weight_version": engine.version},
            "/health": None,
            "/scripted/seen": engine.seen,
        }[path]
        body = b"" if said is None else dumps(said)
        return web.Response(body=body, content_type="application/json")

    async def set_version(request: web.Request) -> web.Response:
        engine.version = (await request.json())["new_version"]
        return web.json_response({"success": True, "new_version": engine.version})

    async def add_orders(request: web.Request) -> web.Response:
        engine.orders += [Order(**each) for each in await request.json()]
        return web.Response()

    async def load(request: web.Request) -> web.Response:
        engine.load(read_script(await request.text()))
        return web.Response()

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/inference/v1/generate", posted("generate"))
    app.router.add_post("/v1/completions", posted("completions"))
    app.router.add_post("/inference/v1/abort_requests", lambda request: abort(engine, request))
    app.router.add_post("/update_weight_version", set_version)
    app.router.add_post("/scripted/orders", add_orders)
    app.router.add_post("/scripted/script", load)
    for path in ("/version", "/v1/models", "/weight_info", "/health", "/scripted/seen"):
        app.router.add_get(path, say)
    return app


async def serve(script: Script) -> None:
    runner = web.AppRunner(build(script), handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", script.port)
    await site.start()
    port = runner.addresses[0][1]
    print(port, flush=True)
    await asyncio.get_running_loop().create_future()


def read_script(text: str) -> Script:
    fields = json.loads(text)
    turns = tuple(Turn(**each) for each in fields.pop("turns", ()))
    orders = tuple(Order(**each) for each in fields.pop("orders", ()))
    return Script(turns=turns, orders=orders, **fields)


# --- for tests ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scripted:
    """A running scripted engine."""

    url: str
    process: subprocess.Popen[str]

    def seen(self) -> list[dict[str, Any]]:
        """The requests in order, with body, turn, fault and how each ended; aborts too."""
        with urllib.request.urlopen(f"{self.url}/scripted/seen", timeout=10) as answer:
            return json.loads(answer.read())

    def order(self, *orders: Order) -> None:
        """Faults from now on."""
        self._post("/scripted/orders", [asdict(each) for each in orders])

    def set_version(self, version: str) -> None:
        """The weights change."""
        self._post("/update_weight_version", {"new_version": version})

    def play(self, script: Script) -> None:
        """Begin anew with another script."""
        self._post("/scripted/script", asdict(script))

    def _post(self, path: str, body: Any) -> None:
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), head)
        urllib.request.urlopen(request, timeout=10).close()


@contextmanager
def start_scripted(script: Script) -> Iterator[Scripted]:
    """An engine in a process of its own, killed at the end."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve())]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asdict(script)))
        process.stdin.close()
        port = process.stdout.readline().strip()
        try:
            yield Scripted(f"http://127.0.0.1:{port}", process)
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(serve(read_script(sys.stdin.read())))
