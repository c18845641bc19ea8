# SPDX-License-Identifier: Apache-2.0
"""Single operations of an engine over HTTP, each with its deadline and its name.

Contract: what is answered in time with status 200 comes back as what its JSON says; all else is
`OperationFailed`, which names the operation and says why. Nothing is asked twice.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from rltrain.refused import Refused
from rltrain.sync.errors import OperationFailed

SHOWN: Final = 600
"""Characters of an engine's own words, in an error."""
PART: Final = 1 << 16


class Control:
    """One engine's operations. Threads may share it: every operation has its own connection."""

    def __init__(self, url: str) -> None:
        """Raises Refused where it is no URL."""
        try:
            parts = urlsplit(url.rstrip("/").removesuffix("/v1"))
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        if parts.scheme not in ("http", "https") or not host:
            raise Refused(f"replica: {url!r} is no URL of an engine; give http://HOST:PORT")
        secure = parts.scheme == "https"
        self._connection = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._host, self._port, self._prefix = host, port, parts.path

    def get(self, op: str, path: str, seconds: float) -> Any:
        """Ask for something."""
        return self._asked(op, "GET", path, None, seconds)

    def post(
        self, op: str, path: str, seconds: float, body: Mapping[str, Any] | None = None
    ) -> Any:
        """Have something done."""
        return self._asked(op, "POST", path, body, seconds)

    def call(self, op: str, method: str, seconds: float) -> list[Any]:
        """What a method of our extension says, of every rank of the engine."""
        asked = {"method": method, "timeout": seconds}
        told = self.post(op, "/collective_rpc", seconds, asked)
        try:
            return list(told["results"])
        except (TypeError, KeyError) as error:
            raise OperationFailed(f"{op}: the engine does not know {method}") from error

    def _asked(
        self, op: str, verb: str, path: str, body: Mapping[str, Any] | None, seconds: float
    ) -> Any:
        until = time.monotonic() + seconds
        connection = self._connection(self._host, self._port, timeout=seconds)
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(
                verb, self._prefix + path, data, {"Content-Type": "application/json"}
            )
            status, said = _answer(connection, until)
        except TimeoutError as error:
            raise OperationFailed(f"{op}: no answer within {seconds:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            raise OperationFailed(f"{op}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if status != http.client.OK:
            raise OperationFailed(f"{op}: status {status}: {_words(said)}")
        return _read(op, said)


def _answer(connection: http.client.HTTPConnection, until: float) -> tuple[int, bytes]:
    """Status and body, every part of it before the time is up."""
    _allow(connection, until)
    response = connection.getresponse()
    parts: list[bytes] = []
    while part := response.read1(PART):
        parts.append(part)
        if connection.sock is not None:  # gone where the engine closes behind its answer
            _allow(connection, until)
        elif time.monotonic() > until:
            raise TimeoutError
    return response.status, b"".join(parts)


def _allow(connection: http.client.HTTPConnection, until: float) -> None:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    assert connection.sock is not None
    connection.sock.settimeout(left)


def _read(op: str, said: bytes) -> Any:
    try:
        return json.loads(said) if said else None
    except ValueError as error:
        raise OperationFailed(f"{op}: the answer is no JSON: {_words(said)}") from error


def _words(said: bytes) -> str:
    """What an engine says went wrong, on one line."""
    text = said.decode(errors="replace")
    try:
        told: Any = json.loads(text)
        text = str(told["error"]["message"])
    except (ValueError, KeyError, TypeError):
        pass
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
