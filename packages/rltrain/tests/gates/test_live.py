# SPDX-License-Identifier: Apache-2.0
"""A live gate fails where engines and trainer differ, and where too little was compared."""

import math

import numpy as np
import pytest

pytestmark = pytest.mark.trainer

canary = pytest.importorskip("rltrain.sync.canary", exc_type=ImportError)

from rltrain.gates.config import GatesConfig  # noqa: E402
from rltrain.gates.live import GateFailed, expect_passed, figures, measured  # noqa: E402
from rltrain.sync.version import WeightVersion  # noqa: E402

CONFIG = GatesConfig()
FIXED = canary.Figures.of([np.zeros(10)])


def checked(*recent):
    replicas = tuple(
        canary.Compared(replica=f"engine-{n}", fixed=FIXED, recent=each)
        for n, each in enumerate(recent)
    )
    version = WeightVersion(lineage=1, step=4)
    return canary.Checked(version=version, bound=1e-4, replicas=replicas, silent=(), seconds=0.1)


def apart(mean: float, *, tokens: int = 2048, trajectories: int = 8):
    return canary.Figures.of([np.full(tokens // trajectories, mean) for _ in range(trajectories)])


def test_engines_that_agree_on_enough_pass() -> None:
    found = checked(apart(1e-6), apart(2e-6))
    expect_passed(found, CONFIG)
    assert measured(found, CONFIG)
    assert figures(found)["gate/mean"] == pytest.approx(2e-6)
    assert figures(found)["gate/tokens"] == 2048


@pytest.mark.parametrize("mean", [0.031, math.nan, math.inf])
def test_one_engine_that_differs_fails_and_is_named(mean: float) -> None:
    with pytest.raises(GateFailed, match=r"weights 1/4: engine-1: mean"):
        expect_passed(checked(apart(1e-6), apart(mean)), CONFIG)


@pytest.mark.parametrize(
    "recent",
    [None, apart(0.0, tokens=2040), apart(0.0, tokens=4096, trajectories=7)],
    ids=["none", "too few tokens", "too few trajectories"],
)
def test_what_was_not_measured_has_failed(recent) -> None:
    found = checked(apart(0.0), recent)
    assert not measured(found, CONFIG)
    with pytest.raises(GateFailed, match="engine-1: not measured"):
        expect_passed(found, CONFIG)


def test_no_engine_at_all_is_not_measured() -> None:
    with pytest.raises(GateFailed, match="no engine was compared"):
        expect_passed(checked(), CONFIG)
