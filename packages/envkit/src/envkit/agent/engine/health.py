# SPDX-License-Identifier: Apache-2.0
"""Whether a server on this machine answers yet: one short question, asked without a client."""

from __future__ import annotations

import http.client
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_ASK_S: Final = 1.0
"""A server that is there answers on loopback at once; one that is busy starting does not count."""


def answers(port: int, host: str = LOOPBACK) -> bool:
    """True when ``/health`` says so."""
    connection = http.client.HTTPConnection(host, port, timeout=_ASK_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
