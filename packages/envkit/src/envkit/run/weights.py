# SPDX-License-Identifier: Apache-2.0
"""Which weights an engine samples with, where they can be read here.

Contract: a digest is that of the directory which the engine names as its model's root, where that
is a directory of this machine with a whole model in it; of an adapter, of a model on another
machine, or of one named by a hub's name nothing is said. A run has one digest: it is that of its
first process, and a later one that cannot show the same is refused.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from envkit.agent.engine.connection import Connection
from envkit.agent.engine.options import EngineOptions
from envkit.agent.settings import ModelSettings
from envkit.fault import EngineError, HarnessError
from envkit.preflight.amended import Amend
from envkit.preflight.asked import Asked
from envkit.preflight.types import Plan
from envkit.trajectory.weights import weight_files, weights_digest

PATIENCE_S: Final = 2.0
"""After which it is said what is waited for."""


def digest_for(plan: Plan, amend: Amend, resumes: Asked | None) -> str:
    """The digest for all rows of a run whose engine answers; empty where it is not known.

    Raises:
        HarnessError: a file of weights is damaged, or it is another model's than the run began
            with.
    """
    before = resumes.model_digest if resumes else ""
    if resumes and not before:
        return ""
    settings = ModelSettings.read(**amend(plan.specs[0]).agent_args)
    place = asyncio.run(_root(settings.engine))
    now = weights_digest(place, _patient(place)) if place else ""
    if before and now != before:
        raise HarnessError(
            f"--engine {settings.engine.url}: serves {_named(place, now)}, and the run began with "
            f"weights {before[:12]}; serve those, or start a run of its own"
        )
    return now


def _named(place: Path | None, digest: str) -> str:
    if place is None:
        return "weights that cannot be read here"
    return f"{place} with weights {digest[:12]}"


async def _root(options: EngineOptions) -> Path | None:
    """The directory of the model's weights, if the engine names one of this machine."""
    try:
        async with Connection(options) as connection:
            models = cast("list[Any]", (await connection.ask("/v1/models"))["data"])
            chosen = next(each for each in models if options.model in ("", each["id"]))
            return _whole_model(chosen.get("root"))
    except (EngineError, KeyError, TypeError, StopIteration):  # what is wrong shows as it samples
        return None


def _whole_model(root: Any) -> Path | None:
    if not isinstance(root, str) or not root:
        return None
    place = Path(root)
    there = place.is_absolute() and (place / "config.json").is_file()
    return place if there and weight_files(place) else None


def _patient(place: Path) -> Callable[[int, int], None]:
    """Says once what takes so long."""
    began = time.monotonic()
    said = False

    def read(done: int, of: int) -> None:
        nonlocal said
        if not said and time.monotonic() - began > PATIENCE_S and done < of:
            said = True
            left = (time.monotonic() - began) * (of - done) / done
            line = f"reading {of / 1e9:,.1f} GB of weights for their digest, {left:.0f} s more"
            print(f"{line}: {place}", file=sys.stderr)

    return read
