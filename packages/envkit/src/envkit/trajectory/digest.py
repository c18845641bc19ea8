# SPDX-License-Identifier: Apache-2.0
"""Digests of token ids."""

from __future__ import annotations

import hashlib

import numpy as np

from envkit.trajectory.types import Ids


def ids_digest(ids: Ids) -> str:
    """sha256 of ids as little-endian int32, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(ids, "<i4").data).hexdigest()
