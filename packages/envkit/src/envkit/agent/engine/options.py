# SPDX-License-Identifier: Apache-2.0
"""What the engine's client is told once, before its first request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.retry import Backoff
from envkit.trajectory.types import LogprobsMode

type Protocol = Literal["generate", "completions"]
type Kv = Literal["shared", "keep", "reset"]
"""Which keys and values a request may find in the engine's prefix cache: any that there are; those
of weights from the trajectory's first request on; those of weights from this request on."""

ENGINE_BACKOFF = Backoff(tries=6, first_s=1.0, most_s=30.0)
"""Half a minute of outage is survived: a restarted engine takes as long until it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Which engine, and how it is to be asked."""

    url: str
    """``http://HOST:PORT``; a path of ``/v1`` at its end is left out."""
    model: str = ""
    """Name it is served by; empty for the first that the engine lists."""
    token: str = ""
    """Sent as bearer token, where the engine wants one."""
    protocol: Protocol | Literal["auto"] = "auto"
    """``auto``: ``generate`` where the engine offers it, else ``completions``."""
    stream: bool = True
    """False leaves a whole answer one fixed deadline, ``Budgets.generate_s``."""
    stream_interval: int = 32
    """Tokens an event of the stream: about one a second, at 30 tokens a second."""
    vocabulary: int = 0
    """Ids the model knows; 0 where that is not known and only the range of int32 is held."""
    weight_version: int = -1
    """Of an engine that does not tell it, whose weights stay as they are; -1 where not known."""
    logprobs_mode: LogprobsMode | None = None
    """What the engine's logprobs are of, where somebody has asked it before; None: ask it once."""
    cache_salt: str = ""
    """Keeps the engine's prefix cache apart from that of requests with another salt."""
    kv: Kv = "shared"
    """``keep`` and ``reset`` add ``v`` and the weights' version to the salt, as the engine tells it
    before the first request, or before each."""
    budgets: Budgets = DEFAULT_BUDGETS
    backoff: Backoff = ENGINE_BACKOFF

    @property
    def base(self) -> str:
        """The URL that paths are added to."""
        return self.url.rstrip("/").removesuffix("/v1").rstrip("/")
