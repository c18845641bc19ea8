# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

pytest.importorskip("harbor", reason="not run: harbor absent")

from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition

from envkit.task import find_tasks, load_task

TASKS = Path(__file__).parents[4] / "tasks"
EACH = pytest.mark.parametrize("directory", find_tasks(TASKS), ids=lambda path: path.name)


@EACH
def test_harbor_reads_what_we_read(directory: Path) -> None:
    ours, theirs = load_task(directory), Task(directory)
    assert theirs.short_name == ours.name
    assert theirs.instruction == ours.instruction
    assert theirs.config.agent.timeout_sec == ours.agent_timeout_s
    assert theirs.config.verifier.timeout_sec == ours.verifier_timeout_s


@EACH
def test_the_verifier_gets_a_box_of_its_own_without_network(directory: Path) -> None:
    task = Task(directory)
    definition = resolve_verifier_environment_definition(task.config, task.paths)
    assert definition is not None
    assert definition.config.network_mode == "no-network"
    assert not definition.bundled_tests


@EACH
def test_the_world_that_the_prompt_promises_is_the_world_declared(directory: Path) -> None:
    task = load_task(directory)
    assert task.world is not None
    for package in task.world.packages:
        assert package in task.instruction
    assert "network" in task.instruction
    assert str(int(task.agent_timeout_s // 60)) == "10"
    assert "ten minutes" in task.instruction
