# SPDX-License-Identifier: Apache-2.0
"""Faults as HTTP: the class that tells a client whether to come again.

Contract: 429 the engine has no room, 503 it failed or cannot be reached, 504 it was silent for too
long: the same request goes on with the same tokens. 502 it answered what may not be trained on, or
says no: asking again is forbidden, and said so (``x-should-retry``), for drawing until an answer
pleases is another distribution. 400 the request is at fault.
"""

from __future__ import annotations

import math

from starlette.responses import JSONResponse

from envkit.deadline import DeadlineExceeded
from envkit.fault import EngineBusy, EngineError, EnvkitError
from envkit.proxy.types import NotServed

BUSY_S = 1
"""Before a client comes again that was told there are too many conversations."""


def refused(error: EnvkitError | NotServed) -> JSONResponse:
    """The answer that an error stands for."""
    if isinstance(error, NotServed):
        again = {"Retry-After": str(BUSY_S)} if error.status == 429 else {}
        return _json(error.status, error.code, str(error), again)
    status, headers = _status(error), dict[str, str]()
    if isinstance(error, EngineBusy):
        headers["Retry-After"] = str(max(BUSY_S, math.ceil(error.retry_after_s)))
    if status in (400, 502):
        headers["x-should-retry"] = "false"
    return _json(status, type(error).__name__, str(error), headers)


def _status(error: EnvkitError) -> int:
    match error:
        case EngineBusy():
            return 429
        case DeadlineExceeded():
            return 504
        case EngineError() if error.policy.retry:
            return 503
        case EngineError():
            return 502
        case _:
            return 400


def _json(status: int, code: str, message: str, headers: dict[str, str]) -> JSONResponse:
    kind = "invalid_request_error" if 400 <= status < 429 else "server_error"
    body = {"message": message, "type": kind, "param": None, "code": code}
    return JSONResponse({"error": body}, status_code=status, headers=headers)
