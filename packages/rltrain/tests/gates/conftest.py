# SPDX-License-Identifier: Apache-2.0
"""A policy and what it sampled, made once for all tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from envkit.agent.tokens.vocabulary import Vocabulary
from envkit.trajectory.types import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What tests spoil."""

    policy: Path
    other: Path
    """Another policy with the same tokenizer."""
    honest: Path
    """A store."""
    rows: list[Trajectory]
    """Of the honest store: 2,560 sampled tokens."""
    cool: list[Trajectory]
    """Sampled at temperature 0.7, which they say."""
    words: Vocabulary


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    from ..recorded import Asked, policy, record

    place = tmp_path_factory.mktemp("gates")
    model = policy(place / "policy")
    return Ground(
        policy=model,
        other=policy(place / "other", seed=1),
        honest=place / "honest",
        rows=record(place / "honest", model),
        cool=record(place / "cool", model, Asked(temperature=0.7)),
        words=Vocabulary((model / "tokenizer.json").read_text("utf-8")),
    )
