# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""One run, by all of its ranks: its directory is begun or taken up by one, and by nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from rltrain.config.show import shown
from rltrain.loop.directory import begin, expect_free, locked, make
from rltrain.loop.fit import fit
from rltrain.loop.live import live
from rltrain.loop.origin import expect_unchanged, weights
from rltrain.loop.prepare import Prepared
from rltrain.loop.prepare_live import PreparedLive
from rltrain.loop.types import Ended, LiveTold, Told
from rltrain.policy.ranks import all_of, joined, me
from rltrain.refused import Refused


def run(prepared: Prepared, told: Told) -> Ended:
    """Train what was prepared, from its beginning or from where it stands.

    Raises:
        Refused: it cannot be trained here; the same on every rank.
    """
    deterministic = prepared.work.settings.run.deterministic
    with joined(deterministic=deterministic), _taken(prepared):
        return fit(prepared.work, told)


def run_live(prepared: PreparedLive, told: LiveTold) -> Ended:
    """Sample and train, from the beginning or from where the run stands.

    Raises:
        Refused: it cannot be run here, or must not go on.
    """
    with ExitStack() as held:
        _take(prepared, held)
        return asyncio.run(live(prepared.work, told))


@contextmanager
def _taken(prepared: Prepared) -> Generator[None]:
    """Hold the run's directory; what stands in the way on the first rank does so on all."""
    with ExitStack() as held:
        refused = ""
        if me() == 0:
            try:
                _take(prepared, held)
            except Refused as error:
                refused = str(error)
        if any(refusals := all_of(refused)):
            raise Refused(refusals[0])
        yield


def _take(prepared: Prepared | PreparedLive, held: ExitStack) -> None:
    root = prepared.work.root
    if prepared.new:
        make(root)
    held.enter_context(locked(root))
    settings, manifest = prepared.work.settings, prepared.manifest
    if not prepared.new:
        expect_unchanged(settings, manifest)
        return
    expect_free(root)  # another run may have been begun here since this one was prepared
    found = manifest.model_copy(update={"weights": weights(settings)})
    begin(root, shown(settings), found)
