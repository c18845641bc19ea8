# SPDX-License-Identifier: Apache-2.0
"""Lets a request through only with the token and from this machine.

Host must name a loopback address and Origin, when sent, too (a web page cannot reach the gateway
by rebinding its name); Authorization must carry the bearer token, compared in constant time.
`/health` needs no token. Anything else gets a plain status and never reaches the application.
"""

import hmac
import re

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = re.compile(rb"(?:https?://)?(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?")


class Guard:
    """An ASGI application around another. `token=None` asks for none (host-side socket)."""

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await refusal(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        origins = [value for name, value in headers if name == b"origin"]
        if len(hosts) != 1 or not LOOPBACK.fullmatch(hosts[0]):
            return PlainTextResponse("Host must be a loopback address.", status_code=421)
        if not all(map(LOOPBACK.fullmatch, origins)):
            return PlainTextResponse("Origin is not allowed.", status_code=403)
        if scope["path"] == "/health" or self._token is None or self._has_token(headers):
            return None
        return PlainTextResponse(
            "A bearer token is required.", status_code=401, headers={"WWW-Authenticate": "Bearer"}
        )

    def _has_token(self, headers: list[tuple[bytes, bytes]]) -> bool:
        sent = [value for name, value in headers if name == b"authorization"]
        if not self._token or len(sent) != 1:
            return False
        return hmac.compare_digest(sent[0], b"Bearer " + self._token.encode())
