# SPDX-License-Identifier: Apache-2.0
"""Only a struck attempt is another one: its layer, its one short budget, its word of the strike."""

import dataclasses
from pathlib import Path

import orjson
import pytest
from harbor.environments.base import BaseEnvironment

from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.preflight.attempt import Order
from envkit.preflight.chaos import layer
from envkit.preflight.chaos.choose import Chosen, Strike, write_chosen
from envkit.preflight.chaos.expected import table
from envkit.preflight.chaos.local import LocalLayer
from envkit.preflight.chaos.order import STRIKE_ENV, Injector, layered, shortened
from envkit.preflight.floor import LOCAL, UNSAFE
from envkit.sandbox import guard
from envkit.trial.request import TrialRequest


def order(trial: str, attempt: int = 1) -> Order:
    request = TrialRequest(
        trial_id=trial,
        attempt=attempt,
        task_dir=Path("task"),
        trials_dir=Path("trials"),
        agent="replay",
        environment=LOCAL,
    )
    return Order(request=request, prepared=None, limit_s=4000.0, hold=False, env={"KEY": "1"})


def injector(tmp_path: Path, kind: str = "reset", phase: str = "call") -> Injector:
    strike = Strike(trial="struck__000", kind=kind, phase=phase)
    plan = tmp_path / "chaos" / "plan.json"
    write_chosen(plan, Chosen(run="token", seed=0, hang_s=7.0, strikes=(strike,)))
    return Injector.read(plan)


@pytest.mark.parametrize(("trial", "attempt"), [("other__000", 1), ("struck__000", 2)])
def test_an_attempt_that_nothing_strikes_is_left_as_it_is(
    tmp_path: Path, trial: str, attempt: int
) -> None:
    plain = order(trial, attempt)
    assert injector(tmp_path).amend(plain) is plain


def test_a_struck_attempt_has_its_layer_and_knows_what_strikes_it(tmp_path: Path) -> None:
    amended = injector(tmp_path).amend(order("struck__000"))
    told = orjson.loads(amended.env[STRIKE_ENV])
    assert amended.request.environment == layered(LOCAL)
    assert told["strike"]["kind"] == "reset"
    assert told["log"] == str(tmp_path / "chaos" / "chaos.jsonl")
    assert amended.env["KEY"] == "1"
    assert (amended.request.budgets, amended.limit_s) == (DEFAULT_BUDGETS, 4000.0)


def test_only_a_stopped_process_has_a_shorter_limit(tmp_path: Path) -> None:
    assert injector(tmp_path, "stop-trial").amend(order("struck__000")).limit_s == 42.0


@pytest.mark.parametrize(("phase", "kind"), table())
def test_only_the_budget_of_what_hangs_is_short(phase: str, kind: str) -> None:
    made = shortened(DEFAULT_BUDGETS, Strike(trial="t", kind=kind, phase=phase), 7.0)
    names = [each.name for each in dataclasses.fields(Budgets)]
    short = {name for name in names if getattr(made, name) != getattr(DEFAULT_BUDGETS, name)}
    assert all(getattr(made, name) == 7.0 for name in short)
    expected = table()[phase, kind].code
    if expected.startswith("DeadlineExceeded:") and kind != "timeout":  # that one comes at once
        assert f"{expected.partition(':')[2]}_s" in short
        assert short <= {f"{expected.partition(':')[2]}_s", "mcp_connect_s"}
    else:
        assert short == set()


@pytest.mark.parametrize("provider", [LOCAL, UNSAFE])
def test_the_layer_lies_between_the_guard_and_the_provider(provider: str) -> None:
    path = guard.import_path(layered(provider))
    found = getattr(guard, path.partition(":")[2])
    names = [cls.__name__ for cls in found.__mro__]
    assert issubclass(found, BaseEnvironment)
    assert names.index("Guarded") < names.index("Layer") < names.index(provider.split(":")[1])
    assert issubclass(found, LocalLayer) is (provider == LOCAL)


def test_the_layer_answers_for_no_other_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'anything'"):
        _ = layer.anything
