# SPDX-License-Identifier: Apache-2.0
"""Output too long to show: its head and tail, and the whole of it in a file of the agent's box.

The file is written by a second command in the box, because the gateway shares only `/filesystem`
with it, and a file there would be a change to the graded world.
"""

import asyncio
import base64
import secrets
from collections.abc import Mapping

from envkit.servers.command import CommandRunner

FOLDER = "/tmp/envkit-output"
PIECE = 90_000
"""Characters of one argument; the kernel takes up to 128 KiB."""
PIECES_A_RUN = 8
"""Keeps one command under the smallest usual bound on all its arguments (1 MiB)."""
WRITE_S = 10.0
HEAD_SHARE = 0.6

_APPEND = 'p=$1; shift; mkdir -p "${p%/*}" && for c; do printf %s "$c" | base64 -d; done >>"$p"'


def head_and_tail(text: str, limit: int, where: str) -> str:
    """`text` within `limit` characters, with a line that says what is missing and where it is."""
    if len(text) <= limit:
        return text
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    gap = f"\n[... {len(text) - limit} characters left out; {where} ...]\n"
    return text[:head] + gap + text[len(text) - tail :]


async def spill(runner: CommandRunner, data: bytes, cwd: str, env: Mapping[str, str]) -> str:
    """Write `data` to a file of the box; returns its path, or an empty string when that failed."""
    path = f"{FOLDER}/{secrets.token_hex(4)}.txt"
    encoded = base64.b64encode(data).decode()
    pieces = [encoded[i : i + PIECE] for i in range(0, len(encoded), PIECE)]
    try:
        async with asyncio.timeout(WRITE_S):
            for start in range(0, len(pieces), PIECES_A_RUN):
                argv = ["/bin/sh", "-c", _APPEND, "sh", path, *pieces[start : start + PIECES_A_RUN]]
                ended = await runner.run(argv, cwd=cwd, env=env, timeout_s=WRITE_S, max_output=1000)
                if ended.exit_code != 0:
                    return ""
    except TimeoutError:
        return ""
    return path
