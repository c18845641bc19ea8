# SPDX-License-Identifier: Apache-2.0
"""The repository's tiny tasks as transcripts, read by envkit's own servers and without a box."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from envkit.agent.types import CallRequest, ToolSpec
from envkit.task import find_tasks, load_task
from rltrain.tiny.transcripts import Transcript, Turn

TINY = Path(__file__).parents[4] / "tasks/tiny"


def transcripts(place: Path) -> tuple[Transcript, ...]:
    """One a task, in copies of its world under ``place``."""
    return asyncio.run(_transcripts(place))


async def _transcripts(place: Path) -> tuple[Transcript, ...]:
    return tuple([await _transcript(task, place / task.name) for task in find_tasks(TINY)])


async def _transcript(directory: Path, place: Path) -> Transcript:
    from envkit.servers.arguments import input_schema
    from envkit.servers.command import LocalRunner
    from envkit.servers.config import GatewayConfig
    from envkit.servers.desk import Desk

    task = load_task(directory)
    assert task.world is not None
    assert task.calls_path is not None
    shutil.copytree(task.world.dir / "filesystem", place)
    config = GatewayConfig(root=place, servers=task.world.servers, tools=task.world.tools)
    desk = Desk(config, LocalRunner())
    lines = [json.loads(line) for line in task.calls_path.read_text("utf-8").splitlines()]
    turns: list[Turn] = []
    for line in lines[:-1]:
        reply = await desk.call(line["tool"], line["arguments"])
        assert not reply.is_error
        asked = CallRequest(name=line["tool"], arguments=line["arguments"])
        turns.append(Turn(calls=(asked,), results=("\n".join(reply.texts),)))
    tools = tuple(
        ToolSpec(name=name, description=tool.about, parameters=input_schema(tool.arguments))
        for name, tool in desk.tools.items()
    )
    desk.close()
    return Transcript(
        instruction=task.instruction,
        tools=tools,
        turns=tuple(turns),
        answer=lines[-1]["final_answer"],
    )
