# SPDX-License-Identifier: Apache-2.0
"""CRC-32 at the speed of memory: zlib's own takes as long as unpacking the tokens it proves."""

from __future__ import annotations

from typing import Any

from zlib_ng import zlib_ng


def crc32(data: Any, begun: int = 0) -> int:
    """Of anything that gives its bytes, after those that came to ``begun``; as `zlib.crc32`."""
    return zlib_ng.crc32(data, begun)  # pyright: ignore[reportUnknownMemberType]
