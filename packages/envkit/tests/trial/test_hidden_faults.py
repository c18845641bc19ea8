# SPDX-License-Identifier: Apache-2.0
"""Faults that the agent, the verifier or Harbor says nothing of, and model faults that look alike.

One launcher run: every trial is real, and each has an agent or a verifier that goes on without a
word. An infrastructure fault must not become a valid 0; what the model caused must stay valid.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from envkit.deadline import DEFAULT_BUDGETS

from .tiny import DONE, Ran, launcher, lend_parts, make_task, run, run_trials, spec

pytestmark = pytest.mark.integration

WRITE = "printf '{\"reward\": 0.0}' > /logs/verifier/reward.json"
BURST = "python3 -c 'x = bytearray(2 << 30)'"

AGENTS: dict[str, tuple[str, tuple[str, str], bool, int]] = {
    # trial: (agent, (owner, code), reward valid, attempts)
    "gives-up": ("GivesUpOnItsTool", ("server", "DeadlineExceeded:mcp_call"), False, 2),
    "silent-gateway": ("LosesItsGateway", ("server", "DeadlineExceeded:mcp_connect"), False, 2),
    "outlives": ("OutlivesItsLimit", ("model", "EndlessCommand"), True, 1),
    "uses-up": ("UsesUpItsTime", ("model", "AgentTimeoutError"), True, 1),
    "wastes": ("WastesItsTime", ("unknown", "AgentTimeoutError"), False, 2),
    "environment": ("TellsItsEnvironment", ("", ""), True, 1),
}
VERIFIERS: dict[str, str] = {
    "checker-out-of-memory": f"{BURST}; {WRITE}",
    "verifier-fills-its-disk": f"cat /dev/zero > /tmp/zeros; {WRITE}",
    "verifier-killed": f"{WRITE}; kill -9 $$",
}
HEAVY: dict[str, Sequence[Mapping[str, object]]] = {
    "fills-what-is-collected": (
        DONE,
        run("cat /dev/zero > /logs/artifacts/zeros", expect_error=True),
    ),
    "file-for-a-directory": (DONE, run("rm -rf /logs/artifacts; touch /logs/artifacts")),
}


@pytest.fixture(scope="module")
def ran(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    home = tmp_path_factory.mktemp("hidden")
    tasks, out = home / "tasks", home / "out"
    specs = [
        spec(make_task(tasks, name, agent_s=5), out, agent=f"hiding_agent:{agent}")
        for name, (agent, *_) in AGENTS.items()
    ]
    for name, script in VERIFIERS.items():
        task = make_task(tasks, name)
        (task / "tests/test.sh").write_text(f"#!/bin/bash\n{script}\n")
        specs.append(spec(task, out))
    specs += [spec(make_task(tasks, name, calls), out) for name, calls in HEAVY.items()]
    answers = make_task(tasks, "environment", agent_s=5) / "tests/test.sh"
    answers.write_text(answers.read_text().replace("forty-two", "a key of the user"))
    budgets = dataclasses.replace(DEFAULT_BUDGETS, mcp_connect_s=3.0)
    with pytest.MonkeyPatch.context() as patch:
        lend_parts(patch)
        patch.setenv("ENVKIT_TEST_KEY", "a key of the user")
        return run_trials(launcher(out, concurrency=4, budgets=budgets), specs)


@pytest.mark.parametrize("name", AGENTS)
def test_what_an_agent_does_not_say_is_known(ran: Ran, name: str) -> None:
    _, blame, valid, attempts = AGENTS[name]
    record = ran[f"{name}__000"]
    fault = record.fault
    assert ((fault.owner.value, fault.code) if fault else ("", "")) == blame
    assert record.reward_valid is valid
    assert len(record.attempts) == attempts


def test_a_caller_that_gave_up_makes_no_command_endless(ran: Ran) -> None:
    faults = [f for a in ran["gives-up__000"].attempts for f in a.faults]
    assert "EndlessCommand" not in {fault.code for fault in faults}


@pytest.mark.parametrize("name", ["outlives", "uses-up"])
def test_what_the_model_did_before_its_time_was_up_is_graded(ran: Ran, name: str) -> None:
    assert ran[f"{name}__000"].reward == 0.5


def test_an_own_agent_has_the_users_environment(ran: Ran) -> None:
    assert ran["environment__000"].reward == 0.5


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_number_from_a_verifier_that_broke_is_no_verdict_on_the_model(
    ran: Ran, name: str
) -> None:
    record = ran[f"{name}__000"]
    assert record.fault is not None
    assert (record.fault.owner.value, record.fault.code) == ("verifier", "VerifierCrashed")
    assert not record.reward_valid
    assert len(record.attempts) == 1


@pytest.mark.parametrize("name", HEAVY)
def test_what_the_agent_leaves_is_graded_however_heavy(ran: Ran, name: str) -> None:
    record = ran[f"{name}__000"]
    assert record.reward_valid
    assert record.reward == 0.5
    assert len(record.attempts) == 1
    assert record.fault is None or record.fault.owner.value == "model"


def test_nothing_is_left(ran: Ran) -> None:
    assert list(ran.leftovers) == []
