# SPDX-License-Identifier: Apache-2.0
"""An answer by a tool, a list of what is to do, and tools that are taken from a shelf."""

import asyncio
import json
from typing import Any

import pytest

from envkit.agent.toolbelt.extras import Extended
from envkit.agent.types import CallRequest, Observation
from envkit.fault import HarnessError
from envkit.trajectory.types import Stop

from ..small import Belt, call, echo, loop, played


def ask(belt: Extended, name: str, **arguments: Any) -> Observation:
    return asyncio.run(belt.call(CallRequest(name=name, arguments=arguments, call_id="call-0-1")))


def belt(*extras: str) -> Extended:
    return Extended(Belt({"echo": echo, "other": echo}), extras)


def names(belt: Extended) -> list[str]:
    return [tool.name for tool in belt.tools]


def test_a_toolbelt_is_named_by_what_it_has() -> None:
    assert belt("final_answer", "todo_write").name == "belt+final_answer+todo_write"
    assert names(belt("final_answer")) == ["final_answer", "echo", "other"]
    assert ask(belt("final_answer"), "echo", text="hi").text == "hi"


def test_the_answer_is_given_whatever_is_still_to_do() -> None:
    mine = belt("final_answer", "todo_write")
    ask(mine, "todo_write", todos=[{"id": "1", "content": "work", "status": "in_progress"}])
    seen = ask(mine, "final_answer", answer="42")
    assert (seen.ok, seen.final) == (True, "42")


def test_an_answer_by_tool_ends_an_episode() -> None:
    playing = loop("42", call("final_answer", answer="42"))
    playing.toolbelt = Extended(playing.toolbelt, ["final_answer"])
    stop, episode = asyncio.run(played(playing))
    assert (stop, episode.final_answer) == (Stop.FINAL, "42")
    assert [fault.code for fault in episode.parse_faults] == ["no_call"]


def test_todos_are_replaced_or_merged_by_their_ids() -> None:
    mine = belt("todo_write")
    first = {"id": "1", "content": "look", "status": "pending"}
    second = {"id": "2", "content": "write", "status": "pending"}
    ask(mine, "todo_write", todos=[first, second])
    merged = ask(mine, "todo_write", todos=[{"id": "1", "status": "completed"}], merge=True)
    assert json.loads(merged.text)["todos"] == [{**first, "status": "completed"}, second]
    replaced = ask(mine, "todo_write", todos=[second])
    assert json.loads(replaced.text)["todos"] == [second]


def test_a_new_todo_says_what_is_to_be_done_and_a_wrong_one_changes_nothing() -> None:
    mine = belt("todo_write")
    first = {"id": "1", "content": "look", "status": "pending"}
    ask(mine, "todo_write", todos=[first])
    seen = ask(mine, "todo_write", todos=[{"id": "9", "status": "pending"}])
    assert (seen.ok, seen.code) == (False, "missing_content")
    assert json.loads(ask(mine, "todo_write", todos=[], merge=True).text)["todos"] == [first]


def test_tools_on_a_shelf_are_found_taken_and_put_back() -> None:
    mine = belt("toolbelt")
    meta = [f"toolbelt_{what}_tool" for what in ("inspect", "add", "remove")]
    assert names(mine) == ["toolbelt_list_tools", *meta]
    assert json.loads(ask(mine, "toolbelt_list_tools").text) == ["echo", "other"]
    inspected = json.loads(ask(mine, "toolbelt_inspect_tool", tool_name="echo").text)
    assert inspected["name"] == "echo"
    added = ask(mine, "toolbelt_add_tool", tool_name="echo")
    assert json.loads(added.text.partition("\n")[2]) == inspected, "the prompt has no schema of it"
    assert names(mine)[-1] == "echo"
    ask(mine, "toolbelt_remove_tool", tool_name="echo")
    assert "echo" not in names(mine)


@pytest.mark.parametrize("tool", ["inspect", "add", "remove"])
def test_a_tool_that_is_not_there_is_an_observation(tool: str) -> None:
    seen = ask(belt("toolbelt"), f"toolbelt_{tool}_tool", tool_name="nothing")
    assert (seen.ok, seen.code) == (False, "unknown_tool")
    seen = ask(belt("toolbelt"), "toolbelt_remove_tool", tool_name="echo")
    assert seen.code == "not_added"


def test_a_call_of_a_tool_that_was_not_taken_is_told_so() -> None:
    playing = loop(
        call("echo", text="no"),
        call("toolbelt_add_tool", tool_name="echo"),
        call("echo", text="yes"),
        "done",
    )
    playing.toolbelt = Extended(playing.toolbelt, ["toolbelt"])
    _, episode = asyncio.run(played(playing))
    assert [fault.code for fault in episode.parse_faults] == ["unknown_tool"]
    assert [(made.name, made.ok) for made in episode.calls] == [
        ("toolbelt_add_tool", True),
        ("echo", True),
    ]


def test_an_extra_that_does_not_exist_or_is_served_already_is_refused() -> None:
    with pytest.raises(HarnessError, match="no extra 'memory'"):
        belt("memory")
    with pytest.raises(HarnessError, match="list final_answer themselves"):
        Extended(Belt({"final_answer": echo}), ["final_answer"])
