# SPDX-License-Identifier: Apache-2.0
"""The overfit gate's verdict, and what it names where nothing was learned."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rltrain.evaluate.scores import Scores
from rltrain.gates.config import GatesConfig, OverfitConfig
from rltrain.loop.overfit import Verdict, judged, keep, verdict_of
from rltrain.track.metrics import Step

GOOD = {
    "groups/no_variance": 1.0,
    "groups/trained": 7.0,
    "rollout/fault_rate": 0.01,
    "gate/mean": 1e-6,
    "behaviour/cut_off": 0.1,
    "optimizer/gradient_norm": 0.2,
    "optimizer/learning_rate": 1e-4,
    "loss/masked_positive": 0.01,
    "loss/masked_negative": 0.01,
    "loss/entropy": 0.5,
    "loss/tv": 0.01,
    "staleness/max": 0.0,
}
BEFORE = Scores(rewards={str(n): [0.0, 0.25, 0.5] for n in range(8)})


def after(rise: float, **more: list[float | None]) -> Scores:
    rows = {
        name: [each + rise for each in row if each is not None]
        for name, row in BEFORE.rewards.items()
    }
    return Scores(rewards={**rows, **more})


def verdict(
    found: Scores, numbers: Mapping[str, float | None] = GOOD, *, constant: int = 0, steps: int = 6
) -> Verdict:
    config = GatesConfig(overfit=OverfitConfig(rise=0.08))
    taken = [Step(step=n, numbers=numbers) for n in range(1, steps + 1)]
    return judged(BEFORE, found, taken, config, constant)


def test_a_rise_as_asked_passes_and_needs_no_diagnosis() -> None:
    found = verdict(after(0.2))
    assert found.passed
    assert found.rise == pytest.approx(0.2)
    assert found.diagnosis == ()


def test_a_rise_of_less_than_was_asked_does_not() -> None:
    assert not verdict(after(0.05)).passed


def test_a_rise_that_chance_could_have_brought_does_not() -> None:
    rows = {str(n): [1.0 if n < 2 else 0.25] * 3 for n in range(8)}
    found = verdict(Scores(rewards=rows))
    assert found.rise > 0.08
    assert found.low < 0
    assert not found.passed


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ({"groups/no_variance": 9.0}, "rewards: 9.0 groups a step had one reward each"),
        ({"rollout/fault_rate": 0.4}, "faults: they took 40%"),
        ({"gate/mean": 0.2}, "tokens: engine and trainer differ by 0.2 nats"),
        ({"behaviour/cut_off": 0.8}, "tokens: 80% of the trajectories ran into a limit"),
        ({"optimizer/gradient_norm": 0.0}, "gradients: their norm is 0.0e+00"),
        ({"optimizer/learning_rate": 0.0}, "gradients: the learning rate is 0"),
        (
            {"loss/masked_negative": 0.7},
            "gradients: the loss masks 70% of the tokens with negative",
        ),
        ({"staleness/max": 2.0, "loss/tv": 0.0}, "sync: samples of older weights score as if"),
        ({"gate/mean": None}, "sync: engines and trainer were never compared"),
    ],
)
def test_what_is_not_right_is_named(numbers: dict[str, float | None], why: str) -> None:
    assert verdict(after(0.0), {**GOOD, **numbers}).diagnosis[0].startswith(why)


def test_causes_come_before_what_they_lead_to() -> None:
    numbers = {**GOOD, "rollout/fault_rate": 0.9, "optimizer/gradient_norm": 0.0, "gate/mean": 0.2}
    named = [each.partition(":")[0] for each in verdict(after(0.0), numbers, constant=20).diagnosis]
    assert named[:4] == ["rewards", "faults", "tokens", "gradients"]


def test_where_all_numbers_are_right_that_is_said() -> None:
    assert verdict(after(0.0)).diagnosis[0].startswith("none of the causes that numbers show")


def test_an_evaluation_full_of_faults_is_no_lack_of_learning() -> None:
    lost: dict[str, list[float | None]] = {str(n): [None, None, 0.0] for n in range(8)}
    assert "67% of the last evaluation's" in verdict(after(0.0, **lost)).diagnosis[0]


def test_a_run_of_no_steps_says_so() -> None:
    assert verdict(after(0.0), steps=0).diagnosis == ("no step was taken",)


def test_a_verdict_is_found_again(tmp_path: Path) -> None:
    assert verdict_of(tmp_path) is None
    keep(tmp_path, verdict(after(0.2)))
    assert verdict_of(tmp_path) == verdict(after(0.2))
