# SPDX-License-Identifier: Apache-2.0
"""The loop: what enters the stream, what ends an episode, and what the model is told meanwhile."""

import asyncio
from typing import Any

import numpy as np
import pytest

from envkit.agent.history import fingerprint
from envkit.agent.loop import Hooks, Loop
from envkit.agent.show import NUDGE
from envkit.agent.stream import digest
from envkit.agent.types import CallRequest
from envkit.fault import (
    EngineError,
    HarnessError,
    KilledOwnBox,
    OutOfMemory,
    SandboxDied,
    ServerDisconnected,
)
from envkit.trajectory.types import Episode, Kind, Stop

from .small import END, TASK, ByteTemplate, Say, call, echo, loop, played, seen

TEMPLATE = ByteTemplate()


def play(*turns: Any, **more: Any) -> tuple[Stop, Episode, Loop]:
    playing = loop(*turns, **more)
    return *asyncio.run(played(playing)), playing


def texts(episode: Episode, kind: Kind) -> list[str]:
    ids = episode.stream.token_ids.tolist()
    found = [s for s in episode.stream.segments if s.kind is kind]
    return [TEMPLATE.decode(ids[s.start : s.stop]) for s in found]


def test_a_message_without_a_call_is_the_final_answer() -> None:
    stop, episode, _ = play("42")
    assert (stop, episode.final_answer) == (Stop.FINAL, "42")
    assert texts(episode, Kind.PROMPT) == ['<s>["echo"]<sys>Work.</s><user>Say 42.</s><m>']
    assert texts(episode, Kind.MODEL) == ["42</s>"]
    assert episode.used.turns == 1


def test_what_was_sampled_enters_verbatim_and_the_next_request_begins_with_it() -> None:
    _, episode, playing = play(call("echo", text="hi"), "done")
    first, second = playing.engine.asked
    ids = episode.stream.token_ids.tolist()
    assert ids[: len(first["ids"])] == first["ids"]
    assert ids[: len(second["ids"])] == second["ids"]
    assert texts(episode, Kind.TOOL) == ["<tool>hi</s><m>"]
    sampled = [*call("echo", text="hi").encode(), END, *b"done", END]
    assert episode.stream.token_ids[episode.stream.loss_mask].tolist() == sampled
    assert [first["id"], second["id"]] == ["episode-0", "episode-1"]


def test_records_agree_with_the_stream() -> None:
    times = iter(np.arange(0.0, 100.0, 0.25).tolist())
    _, episode, _ = play(call("echo", text="hi"), "done", clock=lambda: next(times))
    model = [s for s in episode.stream.segments if s.kind is Kind.MODEL]
    assert [r.sampled_tokens for r in episode.requests] == [s.stop - s.start for s in model]
    assert [r.prompt_tokens for r in episode.requests] == [s.start for s in model]
    (tool,) = (s for s in episode.stream.segments if s.kind is Kind.TOOL)
    (made,) = episode.calls
    assert made.observation_sha256 == digest(episode.stream.token_ids[tool.start : tool.stop])
    assert (made.call_id, made.turn, made.name, made.ok) == ("call-0-1", 0, "echo", True)
    assert made.started_s > 0
    assert made.fingerprint == fingerprint(CallRequest(name="echo", arguments={"text": "hi"}))


def test_equal_calls_have_equal_fingerprints_whatever_the_order_of_their_arguments() -> None:
    one = fingerprint(CallRequest(name="t", arguments={"a": 1, "b": [2]}))
    assert one == fingerprint(CallRequest(name="t", arguments={"b": [2], "a": 1}))
    assert one != fingerprint(CallRequest(name="t", arguments={"a": 1, "b": [3]}))
    assert fingerprint(CallRequest(name="t", arguments={"a": "\ud800", "b": 2**70}))


def test_parallel_calls_are_carried_out_in_order_and_answered_together() -> None:
    turn = "\n".join([call("echo", text="a"), call("echo", text="b")])
    _, episode, playing = play(turn, turn, "done")
    assert texts(episode, Kind.TOOL) == ["<tool>a</s><tool>b</s><m>"] * 2
    ids = [made.call_id for made in playing.toolbelt.called]
    assert ids == ["call-0-1", "call-0-2", "call-1-1", "call-1-2"]
    assert [made.call_id for made in episode.calls] == ids
    assert len({made.observation_sha256 for made in episode.calls}) == 1


def test_an_error_is_shown_as_one() -> None:
    tools = {"no": lambda _: seen("not_found: a.txt", ok=False, code="not_found")}
    _, episode, _ = play(call("no"), "done", tools=tools)
    assert texts(episode, Kind.TOOL) == ["<tool>Error: not_found: a.txt</s><m>"]
    assert (episode.calls[0].ok, episode.calls[0].code) == (False, "not_found")


def test_a_final_answer_by_tool_ends_the_episode_and_what_follows_it_is_not_carried_out() -> None:
    tools = {"final_answer": lambda a: seen("", final=a["answer"]), "echo": echo}
    turn = "\n".join([call("final_answer", answer="42"), call("echo", text="late")])
    stop, episode, playing = play(turn, tools=tools)
    assert (stop, episode.final_answer) == (Stop.FINAL, "42")
    assert [made.name for made in playing.toolbelt.called] == ["final_answer"]
    assert episode.stream.segments[-1].kind is Kind.MODEL


@pytest.mark.parametrize("by_tool", [True, False])
@pytest.mark.parametrize("limits", [{"tool_calls": 1}, {"own_s": 2.5}])
def test_an_answer_is_taken_also_where_nothing_else_may_be_called_any_more(
    by_tool: bool, limits: dict[str, Any]
) -> None:
    tools = {"final_answer": lambda a: seen("", final=a["answer"]), "echo": echo}
    answer = call("final_answer", answer="42") if by_tool else "42"
    tools = tools if by_tool else {"echo": echo}
    stop, episode, _ = play(call("echo"), answer, tools=tools, **limits)
    assert (stop, episode.final_answer) == (Stop.FINAL, "42")


def test_a_message_without_a_call_is_repaired_where_the_answer_is_a_tools() -> None:
    tools = {"final_answer": lambda a: seen("", final=a["answer"])}
    stop, episode, _ = play("42", call("final_answer", answer="42"), tools=tools)
    assert stop is Stop.FINAL
    assert episode.final_answer == "42"
    assert [fault.code for fault in episode.parse_faults] == ["no_call"]
    assert episode.used.repairs == 1
    assert "final_answer" in texts(episode, Kind.HARNESS)[0]


def test_a_call_that_cannot_be_read_is_answered_and_never_ends_the_episode_in_silence() -> None:
    stop, episode, playing = play("CALL echo {", "CALL nothing {}", "sorry")
    assert stop is Stop.FINAL
    assert [fault.code for fault in episode.parse_faults] == ["malformed", "unknown_tool"]
    assert [fault.turn for fault in episode.parse_faults] == [0, 1]
    assert texts(episode, Kind.HARNESS) == [
        "<user>arguments are JSON</s><m>",
        "<user>no tool nothing</s><m>",
    ]
    assert playing.toolbelt.called == []


def test_calls_beside_one_that_cannot_be_read_are_carried_out() -> None:
    turn = "\n".join([call("echo", text="a"), "CALL echo {"])
    _, episode, _ = play(turn, "done")
    assert texts(episode, Kind.TOOL) == ["<tool>a</s><user>arguments are JSON</s><m>"]
    assert episode.used.repairs == 1


def test_repairs_are_bounded() -> None:
    stop, episode, _ = play(*["CALL echo {"] * 3, repairs=2)
    assert stop is Stop.LENGTH
    assert episode.used.repairs == 2
    assert len(episode.parse_faults) == 3
    assert episode.final_answer is None


def test_a_turn_that_is_cut_off_gets_its_end_from_the_harness_and_is_told() -> None:
    stop, episode, playing = play("x" * 50, "42", tokens_per_turn=20)
    assert stop is Stop.FINAL
    assert texts(episode, Kind.MODEL) == ["x" * 20, "42</s>"]
    end, told = texts(episode, Kind.HARNESS)
    assert end == "</s>"
    assert "cut off" in told
    assert [fault.code for fault in episode.parse_faults] == ["cut_off"]
    assert [s.finish for s in episode.stream.segments if s.kind is Kind.MODEL] == ["length", "stop"]
    assert [asked["max_tokens"] for asked in playing.engine.asked] == [20, 20]


def test_a_model_that_is_always_cut_off_ends_by_length() -> None:
    stop, episode, _ = play(*["x" * 50] * 2, tokens_per_turn=20, repairs=1)
    assert stop is Stop.LENGTH
    assert episode.stream.segments[-1].kind is Kind.MODEL


def test_nothing_of_a_turn_that_was_cut_off_is_carried_out() -> None:
    turn = call("echo", text="a") + "\n" + "x" * 50
    stop, episode, playing = play(turn, "done", tokens_per_turn=40)
    assert stop is Stop.FINAL
    assert playing.toolbelt.called == []
    assert [fault.code for fault in episode.parse_faults] == ["cut_off"]


def test_a_turn_that_uses_up_the_context_ends_by_context() -> None:
    prompt = len(TEMPLATE.prompt(TASK, ())) + len('"echo"')
    stop, episode, playing = play("x" * 500, context_tokens=prompt + 30)
    assert stop is Stop.CONTEXT
    assert playing.engine.asked[0]["max_tokens"] == 30
    assert len(episode.stream.token_ids) == prompt + 30
    assert episode.used.repairs == 0


def test_no_request_may_go_beyond_the_context() -> None:
    _, episode, playing = play(call("echo", text="y" * 5000), "done", context_tokens=2000)
    assert all(len(a["ids"]) + a["max_tokens"] <= 2000 for a in playing.engine.asked)
    assert len(episode.stream.token_ids) <= 2000


def test_turns_and_calls_are_capped() -> None:
    stop, episode, playing = play(*[call("echo")] * 9, turns=3)
    assert (stop, episode.used.turns) == (Stop.TURN_CAP, 3)
    assert len(playing.toolbelt.called) == 3
    assert episode.stream.segments[-1].kind is Kind.MODEL
    assert episode.calls[-1].observation_sha256 == ""

    turn = "\n".join([call("echo")] * 5)
    stop, episode, playing = play(turn, tool_calls=3)
    assert (stop, episode.used.tool_calls, len(playing.toolbelt.called)) == (Stop.TURN_CAP, 3, 3)


def test_own_time_ends_the_episode_and_waiting_does_not() -> None:
    slow = Say(text=call("echo"), seconds=100.0, queued_s=99.0)
    stop, episode, _ = play(*[slow] * 5, "done", own_s=50.0)
    assert stop is Stop.FINAL
    assert episode.used.waited_s == 5 * 99.0
    stop, episode, _ = play(*[Say(text=call("echo"), seconds=20.0)] * 5, own_s=50.0)
    assert stop is Stop.TIMEOUT
    assert (episode.used.turns, episode.used.tool_calls) == (3, 2)


def test_time_that_runs_out_in_a_call_ends_the_turn() -> None:
    tools = {"slow": lambda _: seen("", seconds=60.0)}
    stop, _, playing = play("\n".join([call("slow")] * 3), own_s=50.0, tools=tools)
    assert stop is Stop.TIMEOUT
    assert len(playing.toolbelt.called) == 1


def test_the_nudge_is_given_once_and_stays_given() -> None:
    turns = [call("echo", text="z" * 400)] * 12
    stop, episode, _ = play(*turns, context_tokens=6000, tokens_per_turn=500, nudge_ratio=0.5)
    told = [text for text in texts(episode, Kind.TOOL) if NUDGE in text]
    assert len(told) == 1
    assert told[0].endswith(f"<user>{NUDGE}</s><m>")
    assert told[0] == texts(episode, Kind.TOOL)[episode.used.nudged_at or 0]
    assert stop is Stop.CONTEXT


def test_an_evaluation_is_the_same_but_for_the_nudge() -> None:
    turns = [call("echo", text="z" * 400)] * 12
    limits = {"context_tokens": 6000, "tokens_per_turn": 500, "nudge_ratio": 0.5, "turns": 4}
    _, trained, _ = play(*turns, **limits)
    _, evaluated, _ = play(*turns, **limits, evaluation=True)
    assert evaluated.evaluation
    assert evaluated.used.nudged_at is None
    assert trained.used.nudged_at is None, "the premise: none was due yet"
    assert trained.stream.token_ids.tolist() == evaluated.stream.token_ids.tolist()


def test_a_nudge_that_does_not_fit_is_not_given_and_costs_nothing() -> None:
    prompt = len(TEMPLATE.prompt(TASK, ())) + len('"echo"')
    turn = call("echo", text="a")
    room = len(turn) + 1 + len("<a></s><m>") + 20
    _, episode, _ = play(turn, "42", context_tokens=prompt + room, tokens_per_turn=len(turn) + 1)
    assert texts(episode, Kind.TOOL) == ["<tool>a</s><m>"]
    assert episode.used.nudged_at is None
    assert episode.final_answer == "42"


def test_a_repair_and_a_nudge_are_one_message() -> None:
    prompt = len(TEMPLATE.prompt(TASK, ())) + len('"echo"')
    _, episode, _ = play("CALL echo {", "done", context_tokens=2 * prompt + 400, nudge_ratio=0.9)
    (told,) = texts(episode, Kind.HARNESS)
    assert told == f"<user>arguments are JSON\n\n{NUDGE}</s><m>"
    assert episode.used.nudged_at == 0


def test_long_results_are_cut_kept_whole_and_counted() -> None:
    long = "".join(f"line {n}\n" for n in range(400))
    _, episode, playing = play(call("echo", text=long), "done", tool_result_tokens=300)
    (shown,) = texts(episode, Kind.TOOL)
    assert "/kept/call-0-1.txt" in shown
    assert playing.toolbelt.kept == {"/kept/call-0-1.txt": long}
    assert shown.startswith("<tool>line 0\n")
    assert shown.endswith("line 399\n</s><m>")
    assert episode.calls[0].cut_tokens > 0


def test_results_are_cut_until_they_fit_the_context() -> None:
    tools = {"long": lambda _: "a" * 20_000, "echo": echo}
    turn = "\n".join([call("long"), call("echo", text="b")])
    limits = {"context_tokens": 12_000, "tokens_per_turn": 3000}
    stop, episode, _ = play(turn, "done", tools=tools, **limits)
    assert stop is Stop.FINAL
    (shown,) = texts(episode, Kind.TOOL)
    assert shown.endswith("<tool>b</s><m>")
    tool = next(s for s in episode.stream.segments if s.kind is Kind.TOOL)
    assert 12_000 - tool.stop >= 3000
    assert tool.stop > 8900, "no more is cut than must be"
    assert [made.cut_tokens > 0 for made in episode.calls] == [True, False]


def test_observations_that_cannot_fit_end_by_context_and_the_calls_stand() -> None:
    prompt = len(TEMPLATE.prompt(TASK, ())) + len('"echo"')
    turn = "\n".join([call("echo")] * 8)
    stop, episode, playing = play(turn, context_tokens=prompt + len(turn) + 10)
    assert stop is Stop.CONTEXT
    assert len(playing.toolbelt.called) == 8
    assert {made.observation_sha256 for made in episode.calls} == {""}


def test_a_result_whose_whole_cannot_be_kept_promises_no_file() -> None:
    playing = loop(call("echo", text="y" * 900), "done", tool_result_tokens=200)
    playing.toolbelt.keep_fails = KilledOwnBox("gone")  # pyright: ignore[reportAttributeAccessIssue]
    _, episode = asyncio.run(played(playing))
    assert "ask for less at once" in texts(episode, Kind.TOOL)[0]


@pytest.mark.parametrize("fault", [OutOfMemory("of 512 MiB"), KilledOwnBox("by kill -9 -1")])
def test_what_the_model_caused_is_an_observation(fault: Exception) -> None:
    stop, episode, _ = play(call("bad"), "done", tools={"bad": lambda _: fault})
    assert stop is Stop.FINAL
    assert (episode.calls[0].ok, episode.calls[0].code) == (False, type(fault).__name__)
    assert str(fault) in texts(episode, Kind.TOOL)[0]


@pytest.mark.parametrize("fault", [SandboxDied("box"), ServerDisconnected("gateway")])
def test_what_the_infrastructure_fails_at_is_raised_and_the_episode_stands(
    fault: Exception,
) -> None:
    tools = {"echo": echo, "bad": lambda _: fault}
    playing = loop(call("echo", text="a"), call("bad"), tools=tools)
    with pytest.raises(type(fault)):
        asyncio.run(played(playing))
    episode = playing.episode(Stop.FAULT)
    assert [s.kind for s in episode.stream.segments] == [
        Kind.PROMPT,
        Kind.MODEL,
        Kind.TOOL,
        Kind.MODEL,
    ]
    assert [made.name for made in episode.calls] == ["echo"]
    assert len(episode.requests) == 2


def test_a_fault_of_the_engine_leaves_what_there_was() -> None:
    playing = loop(call("echo"), EngineError("gone"))
    with pytest.raises(EngineError):
        asyncio.run(played(playing))
    episode = playing.episode(Stop.FAULT)
    assert len(episode.requests) == 1
    assert episode.used.turns == 1


def test_a_request_that_the_engine_gave_up_is_its_fault() -> None:
    with pytest.raises(EngineError, match="gave the request up"):
        play(Say(text="42", finish="abort"))


def test_a_prompt_that_does_not_fit_is_no_stop_of_the_models() -> None:
    with pytest.raises(HarnessError, match="the context takes 20"):
        play("42", context_tokens=20)


def test_an_episode_that_never_began_is_empty_but_whole() -> None:
    episode = loop("42").episode(Stop.FAULT)
    assert len(episode.stream.token_ids) == 0
    assert episode.requests == ()


def test_whoever_runs_a_loop_hears_of_its_calls_and_holds_them_up() -> None:
    heard: list[str] = []

    async def turn(calls: int) -> float:
        heard.append(f"turn {calls}")
        return 2.0

    hooks = Hooks(
        acted=lambda a: heard.append(f"{a.observation.call.call_id} after {a.waited_s}"),
        waits=lambda: heard.append("waits"),
        turn=turn,
    )
    _, episode, _ = play(call("echo"), "done", hooks=hooks)
    assert heard == ["waits", "turn 0", "call-0-1 after 2.0", "waits"]
    assert episode.used.waited_s == 2.0
