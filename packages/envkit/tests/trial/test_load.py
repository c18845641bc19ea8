# SPDX-License-Identifier: Apache-2.0
"""Trials shaped like training: pauses, idle time, a second grading, tools held to the world's."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envkit.preflight.types import TrialSpec
from envkit.servers.catalog import ALL
from envkit.servers.tool import full_name
from envkit.trial.load import LoadShape

from .tiny import ANSWER, DONE, LIST, Ran, launcher, make_task, run_trials, spec

pytestmark = pytest.mark.integration

THINKING = ({**LIST, "think_s": 0.4}, {**DONE, "think_s": 0.6}, ANSWER)
SERVED = [
    full_name(tool) for tool in ALL if tool.server in ("filesystem_server", "code_execution_server")
]
AGENTS = ("replay", "oracle", "nop")
FICKLE = """\
#!/bin/bash
# Another reward each time, by what only chance decides.
printf '{"reward": 0.%d%d}' $((RANDOM % 9 + 1)) $RANDOM > /logs/verifier/reward.json
"""
STEADY = """\
#!/bin/bash
printf '{"reward": 1.0, "checked": 1.0}' > /logs/verifier/reward.json
"""


def shaped(task: Path, out: Path, agent: str = "replay", **load: Any) -> TrialSpec:
    return replace(spec(task, out, agent=agent), load=LoadShape(**load))


@pytest.fixture(scope="module")
def ran(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    home = tmp_path_factory.mktemp("load")
    tasks, out = home / "tasks", home / "out"
    fickle = make_task(tasks, "fickle")
    (fickle / "tests/test.sh").write_text(FICKLE)
    steady = make_task(tasks, "steady")
    (steady / "tests/test.sh").write_text(STEADY)
    specs = [
        shaped(make_task(tasks, "recorded", THINKING), out, think="recorded"),
        shaped(make_task(tasks, "drawn"), out, think="lognormal:0.2,0.5", seed=7),
        shaped(make_task(tasks, "thinks-too-long", agent_s=15), out, think="600"),
        shaped(make_task(tasks, "idle", agent_s=10), out, hold_s=12.0),
        shaped(make_task(tasks, "idle-oracle"), out, "oracle", hold_s=1.0),
        shaped(fickle, out, grade_twice=True),
        shaped(steady, out, grade_twice=True),
    ]
    specs += [
        spec(strict(home / "more", [*SERVED, "frob_server_frob"]), out, f"more-{agent}", agent)
        for agent in AGENTS
    ]
    specs += [spec(strict(home / "fewer", SERVED[1:]), out, f"fewer-{a}", a) for a in AGENTS]
    specs += [spec(strict(home / "same", SERVED), out, f"same-{a}", a) for a in AGENTS]
    return run_trials(launcher(out, concurrency=4), specs)


def strict(tasks: Path, tools: Sequence[str]) -> Path:
    """A task whose world says what its servers must list."""
    task = make_task(tasks)
    world = tasks / "worlds/tiny/world.toml"
    if "expected_tools" not in world.read_text():
        world.write_text(f"{world.read_text()}expected_tools = {json.dumps(list(tools))}\n")
    return task


def phases(ran: Ran, name: str) -> Mapping[str, float]:
    (attempt,) = ran[f"{name}__000"].attempts
    return attempt.phases


def test_recorded_pauses_are_booked_apart_from_the_work(ran: Ran) -> None:
    assert ran["recorded__000"].reward == 1.0
    assert 1.0 <= phases(ran, "recorded")["think"] < 10
    log = (ran["recorded__000"].trial_dir / "agent/calls.jsonl").read_text().splitlines()
    at = [json.loads(line)["at"] for line in log]
    assert at[1] - at[0] >= 0.6


def test_drawn_pauses_are_taken(ran: Ran) -> None:
    assert ran["drawn__000"].reward == 1.0
    assert phases(ran, "drawn")["think"] > 0.05


def test_a_model_that_thinks_for_too_long_used_up_its_own_time(ran: Ran) -> None:
    record = ran["thinks-too-long__000"]
    assert record.fault is not None
    assert (record.fault.owner.value, record.fault.code) == ("model", "AgentTimeoutError")
    assert record.reward_valid
    assert record.reward == 0.0


def test_idle_time_is_nobodys_and_is_not_taken_from_the_agents(ran: Ran) -> None:
    record = ran["idle__000"]
    assert record.reward == 1.0
    assert record.fault is None
    assert phases(ran, "idle")["idle"] >= 12.0


def test_a_trial_of_any_agent_can_sit_idle(ran: Ran) -> None:
    assert ran["idle-oracle__000"].reward == 1.0
    assert phases(ran, "idle-oracle")["idle"] >= 1.0


def test_a_second_grading_that_differs_leaves_the_first_as_it_was(ran: Ran) -> None:
    record = ran["fickle__000"]
    first, second = record.attempts[0].grades
    assert record.reward_valid
    assert first.reward == record.reward
    assert second.reward is not None
    assert second.reward != first.reward
    kept = json.loads((record.trial_dir / "verifier/reward.json").read_text())
    assert kept["reward"] == record.reward


def test_a_second_grading_that_agrees_says_so_and_leaves_no_copy(ran: Ran) -> None:
    record = ran["steady__000"]
    first, second = record.attempts[0].grades
    assert first == second
    assert first.rewards == {"reward": 1.0, "checked": 1.0}
    assert not list(record.trial_dir.glob("*.again/artifacts"))
    assert record.attempts[0].phases["regrade"] > 0
    assert record.attempts[0].cpu_s["box:verifier again"] >= 0


def test_without_a_second_grading_there_are_no_grades(ran: Ran) -> None:
    assert ran["recorded__000"].attempts[0].grades == ()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("world", "code"), [("more", "MissingTools"), ("fewer", "ExtraTools"), ("same", "")]
)
def test_the_servers_list_what_the_world_expects_whoever_acts(
    ran: Ran, world: str, code: str, agent: str
) -> None:
    record = ran[f"{world}-{agent}"]
    assert (record.fault.code if record.fault else "") == code
    assert record.reward_valid is not bool(code)
    assert all(sorted(SERVED) == list(attempt.tools) for attempt in record.attempts)


def test_nothing_is_left(ran: Ran) -> None:
    assert list(ran.leftovers) == []
