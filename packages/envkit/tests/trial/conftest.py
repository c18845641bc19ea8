# SPDX-License-Identifier: Apache-2.0
"""Real trials for tests: skipped where no box can be made."""

import os
from typing import Any, Protocol

import pytest

from envkit.sandbox.availability import availability

from .scripted_model import Play, Played, play_all


class PlayOnce(Protocol):
    """Trials that several modules look at: run the first time they are asked for."""

    def __call__(self, name: str, plays: dict[str, Play], **more: Any) -> dict[str, Played]:
        """By the names of their plays."""
        ...


@pytest.fixture(scope="session")
def boxes() -> None:
    """Asked for by every test that runs a trial."""
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")


@pytest.fixture(scope="session")
def reach(boxes: None) -> None:
    """Asked for by tests that kill or read what runs in boxes from outside."""
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")


@pytest.fixture(scope="session")
def play_once(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> PlayOnce:
    """Trials by the name of their run; nobody changes what they left."""
    done: dict[str, dict[str, Played]] = {}

    def play(name: str, plays: dict[str, Play], **more: Any) -> dict[str, Played]:
        if name not in done:
            done[name] = play_all(tmp_path_factory.mktemp(name), plays, **more)
        return done[name]

    return play
