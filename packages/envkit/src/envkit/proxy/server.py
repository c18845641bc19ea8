# SPDX-License-Identifier: Apache-2.0
"""The paths of the proxy.

::

    POST /v1/chat/completions              POST /t/NAME/v1/chat/completions
    GET  /v1/models                        GET  /t/NAME/v1/models
    POST /t/NAME/end                       GET  /health

A conversation is named by its path, or by the header ``x-trajectory-id``. Every answer says in its
headers where it stands: ``x-trajectory-id``, ``x-row``, and ``x-unproven`` where a stream is
marked.
"""

from __future__ import annotations

import math
from typing import Any, Final, cast

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from envkit.deadline import DeadlineExceeded, deadline
from envkit.fault import EnvkitError
from envkit.proxy.answer import events, whole
from envkit.proxy.body import read_body
from envkit.proxy.desk import Desk, unless_gone
from envkit.proxy.refusals import refused
from envkit.proxy.types import Answered, Asked, Ending, NotServed
from envkit.servers.guard import Guard
from envkit.trajectory.types import Sampling, Stop, Trajectory

BODY_BYTES: Final = 64 << 20
"""Of a request: a conversation of a million tokens takes a tenth of it."""
BODY_S: Final = 60.0
"""Seconds for it to come, from this machine."""
NAME_HEADER: Final = "x-trajectory-id"
GONE: Final = 499
"""What nobody reads any more is answered so."""


def build_app(desk: Desk, defaults: Sampling) -> ASGIApp:
    """The application; ``defaults`` are of sampling parameters that a client leaves out."""

    async def chat(request: Request) -> Response:
        name = request.path_params.get("name") or request.headers.get(NAME_HEADER, "")
        try:
            asked = read_body(await _body(request), defaults)
            work = desk.answer(asked, name)
            answered = await unless_gone(work, lambda: _gone(request))
        except (EnvkitError, NotServed) as error:
            return refused(error)
        except ClientDisconnect:
            return Response(status_code=GONE)
        return Response(status_code=GONE) if answered is None else _answer(answered, asked)

    def _answer(answered: Answered, asked: Asked) -> Response:
        served = desk.crowd.mouth.engine.identity.model
        headers = {NAME_HEADER: answered.conversation, "x-row": answered.row}
        if answered.mark is not None:
            headers["x-unproven"] = answered.mark.code
        if asked.stream:
            data, kind = events(answered, asked, served), "text/event-stream"
        else:
            data, kind = orjson.dumps(whole(answered, asked, served)), "application/json"
        return Response(data, media_type=kind, headers=headers)

    async def models(_request: Request) -> JSONResponse:
        engine = desk.crowd.mouth.engine
        model = {
            "id": engine.identity.model,
            "object": "model",
            "created": 0,
            "owned_by": "envkit",
            "max_model_len": engine.context_tokens,
        }
        return JSONResponse({"object": "list", "data": [model]})

    async def end(request: Request) -> Response:
        try:
            ending = read_ending(await _body(request))
            rows = await desk.end(request.path_params["name"], ending)
        except NotServed as error:
            return refused(error)
        except (OSError, EnvkitError) as error:
            return refused(NotServed(503, "not_stored", f"not stored: {error}"))
        return JSONResponse({"rows": [_row(each) for each in rows]})

    async def health(_request: Request) -> JSONResponse:
        counts = {"open": len(desk.crowd.open), "stored": desk.stored}
        return JSONResponse({"status": "ok", **counts})

    routes = [
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/t/{name}/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/models", models),
        Route("/t/{name}/v1/models", models),
        Route("/t/{name}/end", end, methods=["POST"]),
        Route("/health", health),
    ]
    return Guard(Starlette(routes=routes), token=None)


def read_ending(data: bytes) -> Ending:
    """What a client says of a conversation that ended; an empty body says nothing.

    Raises:
        NotServed: it is no such thing.
    """
    try:
        fields = _object(data or b"{}")
        stop, reward = fields.pop("stop", None), fields.pop("reward", None)
        rewards = {str(name): float(each) for name, each in fields.pop("rewards", {}).items()}
        ending = Ending(
            reward=None if reward is None else float(reward),
            rewards=rewards,
            stop=None if stop is None else Stop(stop),
            **fields,
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise NotServed(400, "invalid_request", f"not how a conversation ends: {error}") from error
    _check(ending)
    return ending


def _object(data: bytes) -> dict[str, Any]:
    given: Any = orjson.loads(data)
    if not isinstance(given, dict):
        raise TypeError("it is no JSON object")
    return cast("dict[str, Any]", given)


def _check(ending: Ending) -> None:
    numbers = [*ending.rewards.values(), ending.reward or 0.0]
    texts = (ending.task, ending.group_id)
    right = (
        all(map(math.isfinite, numbers))
        and isinstance(cast("Any", ending.reward_valid), bool)
        and all(isinstance(cast("Any", each), str) for each in texts)
        and type(cast("Any", ending.sample)) is int
        and ending.sample >= 0
    )
    if not right or ending.stop is Stop.FAULT:
        told = "rewards are finite, reward_valid is true or false, stop is none of a fault"
        raise NotServed(400, "invalid_request", f"not how a conversation ends: {told}")


def _row(row: Trajectory) -> dict[str, Any]:
    outcome, fault = row.outcome, row.outcome.fault
    return {
        "trajectory_id": row.identity.trajectory_id,
        "tokens": len(row.episode.stream.token_ids),
        "sampled_tokens": row.episode.used.sampled_tokens,
        "turns": row.episode.used.turns,
        "stop": row.episode.stop.value,
        "reward": outcome.reward,
        "reward_valid": outcome.reward_valid,
        "unproven": None if fault is None else f"{fault.code}: {fault.message}",
    }


async def _body(request: Request) -> bytes:
    try:
        async with deadline("request", BODY_S):
            return await _whole(request)
    except DeadlineExceeded as error:
        raise NotServed(408, "too_slow", str(error)) from error


async def _whole(request: Request) -> bytes:
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > BODY_BYTES:
            raise NotServed(413, "too_large", f"a request may have {BODY_BYTES} bytes")
    return bytes(parts)


async def _gone(request: Request) -> None:
    """Until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
