# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from types import ModuleType

import pytest

from .world_code import world_modules

TASK = "utilisation-gap"
firm, facts = world_modules("halden-pryce", ["facts.firm", "facts.utilisation"])


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


def holds(verify: ModuleType, answer: str) -> set[str]:
    return {name for name, value in verify.judge(answer).items() if value}


def test_the_verifier_knows_the_practice_of_the_facts(verify: ModuleType) -> None:
    worst = facts.furthest_below()
    assert worst.lower() == verify.PRACTICE
    assert facts.utilisation(worst) == pytest.approx(verify.UTILISATION)
    assert facts.target(worst) == verify.TARGET


def test_each_thing_overlooked_points_at_another_practice() -> None:
    def worst(of: Callable[[str], float], targets: Callable[[str], float]) -> str:
        return min(firm.PRACTICES, key=lambda name: of(name) - targets(name))

    def without_training(name: str) -> float:
        return (
            facts.utilisation(name)
            * facts.available_hours(name)
            / (facts.available_hours(name) + facts.training_hours(name))
        )

    assert worst(facts.utilisation, facts.target) == "Strategy"
    assert worst(without_training, facts.target) == "Digital"
    assert worst(facts.utilisation, facts.TARGETS.__getitem__) == "Organisation"
    assert worst(facts.second_version, facts.target) == "Organisation"


@pytest.mark.parametrize("text", [
    "Practice: Strategy\nUtilisation: 69.4 %\nShortfall: 2.6 points",
    "**Practice:** Strategy\n**Utilization:** 69.44%\n**Shortfall:** 2.56 percentage points",
    "| Practice | Strategy |\n| Utilisation | 2,156 / 3,105 = 69.4 % |\n| Shortfall | -2.6 |",
    "- Practice: the Strategy practice\n- Utilisation: 69.4 percent (target 72.0 %)\n"
    "- Shortfall: 2.6 percentage points below 72.0 %",
    "Practice: Strategy (not Digital)\nUtilisation in 2025: 69.4\nShortfall: 72.0 - 69.4 = 2.6",
])  # fmt: skip
def test_a_right_answer_counts_however_it_is_written(verify: ModuleType, text: str) -> None:
    assert holds(verify, text) == {"practice", "utilisation", "shortfall"}


@pytest.mark.parametrize(("text", "right"), [
    # Version 2; the draft.
    ("Practice: Organisation\nUtilisation: 52.0 %\nShortfall: 5.0 points", set()),
    ("Practice: Organisation\nUtilisation: 47.5 %\nShortfall: 12.5 points", set()),
    # Without the form; with the form that was declined; with February's targets; by the old note.
    ("Practice: Digital\nUtilisation: 67.1 %\nShortfall: 4.9 points", set()),
    ("Practice: Digital\nUtilisation: 70.1 %\nShortfall: 1.9 points", set()),
    ("Practice: Organisation\nUtilisation: 55.7 %\nShortfall: 4.3 points", set()),
    ("Practice: Digital\nUtilisation: 62.3 %\nShortfall: 9.7 points", set()),
    # The right practice: version 2, the months averaged, other slips.
    ("Practice: Strategy\nUtilisation: 68.2 %\nShortfall: 3.8 points", set()),
    ("Practice: Strategy\nUtilisation: 69.1 %\nShortfall: 2.9 points", set()),
    ("Practice: Strategy\nUtilisation: 69.4 %\nShortfall: 3.0 points", {"practice", "utilisation"}),
    ("Practice: Strategy\nUtilisation: 69 %\nShortfall: 2.6 points", {"practice", "shortfall"}),
    ("Practice: Strategy", set()),
    ("Practice: Strategy or Digital\nUtilisation: 69.4 %\nShortfall: 2.6",
     {"utilisation", "shortfall"}),
    ("Practice: Strategy\nUtilisation: 69.4 % or 70.1 %\nShortfall: 2.6 or 1.9", set()),
    ("Strategy 69.4 2.6", set()),
])  # fmt: skip
def test_a_near_miss_gets_what_it_earned(verify: ModuleType, text: str, right: set[str]) -> None:
    assert holds(verify, text) == right
