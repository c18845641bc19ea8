# SPDX-License-Identifier: Apache-2.0
"""What the recorded calls of every task of `halden-pryce` must show."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envkit.task import load_task

TASKS = Path(__file__).parents[4] / "tasks"
IN_WORLD = [
    "december-accruals",
    "lindale-forecast",
    "merrowfield-margin",
    "skelwith-pack",
    "tarnbrook-overcharge",
    "utilisation-gap",
]
MODULES = {"python-docx": "docx", "python-pptx": "pptx"}
"""Import names of the promised packages that are called otherwise."""


def calls(task: str) -> list[dict[str, Any]]:
    lines = (TASKS / task / "solution/calls.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def named_files(record: dict[str, Any]) -> list[str]:
    """Files that a call names: a path argument, or paths in the code that it runs."""
    arguments = record.get("arguments", {})
    direct = [arguments["file_path"]] if "file_path" in arguments else []
    return direct + re.findall(r'"/filesystem(/[^"]+\.\w+)"', arguments.get("code", ""))


@pytest.mark.parametrize("task", IN_WORLD)
def test_calls_are_many_read_a_page_and_run_python_with_a_promised_package(task: str) -> None:
    world = load_task(TASKS / task).world
    assert world is not None
    *made, last = calls(task)
    assert len(made) >= 6
    assert set(last) == {"final_answer"}
    assert "pdf_server_read_pdf_pages" in {record["tool"] for record in made}
    promised = "|".join(MODULES.get(name, name) for name in world.packages)
    code = [record["arguments"].get("code", "") for record in made]
    assert any(re.search(rf"python3.*\n(?:from|import) (?:{promised})\b", text) for text in code)


@pytest.mark.parametrize("task", IN_WORLD)
def test_calls_look_at_three_files_or_more_that_are_there(
    made: Callable[[str], Path], task: str
) -> None:
    drive = made(task) / "filesystem"
    named = {path for record in calls(task) for path in named_files(record)}
    there = {path for path in named if (drive / path[1:]).is_file()}
    assert len(there) >= 3
    assert named - there <= {"/Finance/accruals_2025-12.docx"}


def test_these_are_all_the_tasks_of_the_world() -> None:
    found = [
        path.parent.name
        for path in TASKS.glob("*/task.toml")
        if 'world = "halden-pryce"' in path.read_text("utf-8")
    ]
    assert sorted(found) == IN_WORLD
