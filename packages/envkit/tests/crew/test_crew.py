# SPDX-License-Identifier: Apache-2.0
"""Trials begun one by one in one crew: each is a row, a refusal, or nothing at all."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from envkit.agent.types import CallRequest
from envkit.crew.types import Begun, Ended, Gauges, Phase, Refused, TrialOrder
from envkit.sandbox.reaper import processes, remnants
from envkit.trajectory.store import Store
from envkit.trajectory.types import Kind

from ..engines.scripted import Order, Script, Scripted
from ..run.small import EXEC, model_that_says, script
from ..trial.tiny import make_task
from .small import FOREVER, Heard, Yard, heard, play, ran, soon

pytestmark = pytest.mark.integration

BREAKS = CallRequest(name=EXEC, arguments={"code": "rm -rf /logs; echo > /logs"})
"""What the model does to its own box, so that its answer cannot be taken out of it."""


@dataclass(frozen=True, kw_only=True)
class Shop:
    """One crew for all tests here, and engines whose models do what is wanted."""

    yard: Yard
    heard: Heard
    engines: dict[str, Scripted]
    runner: asyncio.Runner

    def play[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Do something with the crew; what it says is heard anew."""
        self.heard.events.clear()
        return self.runner.run(work)

    def order(self, trial: str, model: str = "works", **more: Any) -> TrialOrder:
        return self.yard.order(trial, engine=self.engines[model].url, **more)

    async def begin(self, *orders: TrialOrder) -> None:
        for each in orders:
            await self.heard.crew.begin(each)

    @property
    def store(self) -> Store:
        return Store(self.yard.root / "trajectories")

    def left(self, trial: str) -> list[str]:
        """What is there of a trial."""
        token = self.heard.crew.ready.run_token
        found = [each.what for each in remnants(token) if f"{token}-{trial}-" in each.what]
        directory = self.yard.root / "trials" / trial
        return [*found, *([str(directory)] if directory.exists() else [])]


def updated(model: Path) -> Script:
    """An engine whose weights change inside both turns."""
    plain = script(model)
    call, answer = plain.turns
    end = len(answer.ids)
    turns = [
        replace(call, versions=[("5", 0), ("6", 7)]),
        replace(answer, versions=[("6", 0), ("7", 1), ("8", end - 1)]),
    ]
    return replace(plain, turns=turns, version="5")


@pytest.fixture(scope="module")
def shop(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    home = tmp_path_factory.mktemp("shop")
    make_task(home / "tasks")
    with ExitStack() as stack:
        turns = {"works": (), "goes on": ([FOREVER],), "breaks": ([BREAKS, "forty-two"],)}
        served = {
            name: stack.enter_context(model_that_says(home, *said)) for name, said in turns.items()
        }
        served["is updated"] = stack.enter_context(model_that_says(home))
        served["is updated"][1].play(updated(served["works"][0]))
        engines = {name: engine for name, (_, engine) in served.items()}
        model, engine = served["works"]
        yard = Yard(home=home, model=model, engine=engine.url)
        runner = stack.enter_context(asyncio.Runner())
        crew = heard(yard.options())
        says = runner.run(crew.__aenter__())
        yield Shop(yard=yard, heard=says, engines=engines, runner=runner)
        runner.run(crew.__aexit__(None, None, None))
        assert remnants(says.crew.ready.run_token) == []


def test_a_trial_that_was_begun_ends_with_its_row_under_the_orders_own_names(shop: Shop) -> None:
    async def work() -> Ended | Refused:
        await shop.begin(shop.order("pair-7.try2", group_id="pair 7", sample=3))
        return (await shop.heard.ends(1))["pair-7.try2"]

    ended = shop.play(work())
    row = shop.store.read("pair-7.try2")  # said, so it is durable
    who = row.identity
    assert (who.group_id, who.sample, who.task) == ("pair 7", 3, "ordinary")
    assert isinstance(ended, Ended)
    assert (ended.group, ended.sample) == ("pair 7", 3)
    assert (ended.outcome, ended.reward, ended.stop) == ("valid", 1.0, "final")
    assert ended.tokens == len(row.episode.stream.token_ids)
    assert ended.sampled_tokens == row.episode.used.sampled_tokens > 0
    assert (ended.oldest, ended.newest, ended.turns) == (-1, -1, 2)
    assert ended.seconds == dict(row.outcome.phases)
    ready = shop.heard.crew.ready
    directory = str(shop.yard.home / "tasks/ordinary")
    assert ready.tasks == {directory: who.task_digest}
    assert (ready.tokenizer_digest, ready.template_digest) == (
        who.tokenizer_digest,
        who.template_digest,
    )
    assert (shop.yard.root / "tokenizers" / who.tokenizer_digest).is_dir()
    assert shop.left("pair-7.try2") == []


def test_tokens_of_a_turn_that_an_update_fell_into_have_each_its_own_version(shop: Shop) -> None:
    """Seven tokens of weights 5, the rest of the turn of 6; the answer begins with 6, ends in 8."""

    async def work() -> Ended | Refused:
        settings = {"engine": {"kv": "keep"}}
        await shop.begin(shop.order("updated", "is updated", settings=settings))
        return (await shop.heard.ends(1))["updated"]

    ended = shop.play(work())
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.oldest, ended.newest) == ("valid", 5, 8)
    episode = shop.store.read("updated").episode
    versions = episode.stream.weight_version
    models = [each for each in episode.stream.segments if each.kind is Kind.MODEL]
    first, last = (versions[each.start : each.stop].tolist() for each in models)
    assert first == [5] * 7 + [6] * (len(first) - 7)
    assert last == [6, *[7] * (len(last) - 2), 8]
    assert set(versions[~episode.stream.loss_mask].tolist()) == {-1}
    assert [each.kv_version for each in episode.requests] == [5, 5]
    asked = [each["body"] for each in shop.engines["is updated"].seen() if "body" in each]
    assert [each["cache_salt"] for each in asked if each.get("model")] == ["v5", "v5"]


def test_a_beginning_its_phases_and_its_end_are_said_in_that_order(shop: Shop) -> None:
    async def work() -> None:
        await shop.begin(shop.order("said"))
        await shop.heard.ends(1)

    shop.play(work())
    events = [each for each in shop.heard.events if not isinstance(each, Gauges)]
    assert isinstance(events[0], Begun)
    assert isinstance(events[-1], Ended)
    phases = [each.phase for each in events[1:-1] if isinstance(each, Phase)]
    assert len(phases) == len(events) - 2
    assert phases[0] == "start"
    assert phases.index("act") < phases.index("grade")


def test_a_task_can_be_named_by_its_directory(shop: Shop) -> None:
    async def work() -> Ended | Refused:
        directory = str(shop.yard.home / "tasks" / "ordinary")
        await shop.begin(shop.order("by-directory", task=directory))
        return (await shop.heard.ends(1))["by-directory"]

    ended = shop.play(work())
    assert isinstance(ended, Ended)
    assert ended.outcome == "valid"


def test_an_order_that_cannot_be_carried_out_is_refused_and_disturbs_no_other(shop: Shop) -> None:
    wrong = [
        (shop.order("good"), "is under way; give another attempt another id"),
        (shop.order("../evil"), "is no name"),
        (shop.order(".hidden"), "is no name"),
        (shop.order("x" * 121), "is no name"),
        (shop.order("a\nb"), "is no name"),
        (shop.order("good\n"), "is no name"),
        (shop.order("other-task", task="nowhere"), "task nowhere: is none of the 1"),
        (shop.order("strange", settings={"voice": "low"}), "there is no 'voice'"),
        (shop.order("wrong", settings={"limits": {"turns": "many"}}), "limits: turns: "),
    ]

    async def work() -> None:
        await shop.begin(shop.order("good"), *[order for order, _ in wrong])
        await shop.heard.until(lambda each: isinstance(each, Ended))
        await shop.begin(shop.order("good"))
        await shop.heard.ends(1)

    shop.play(work())
    refused = [each for each in shop.heard.events if isinstance(each, Refused)]
    taken = (shop.order("good"), "has a row in the store; give another attempt another id")
    for each, (order, line) in zip(refused, [*wrong, taken], strict=True):
        assert each.trial == order.trial_id
        assert line in each.line
        assert "\n" not in each.line
    ends = [each for each in shop.heard.events if isinstance(each, Ended)]
    assert [(each.trial, each.outcome) for each in ends] == [("good", "valid")]


def test_a_setting_of_an_order_holds_for_that_one_alone(shop: Shop) -> None:
    async def work() -> None:
        await shop.begin(shop.order("one-turn", settings={"limits": {"turns": 1}}))
        await shop.begin(shop.order("many-turns"))
        await shop.heard.ends(2)

    shop.play(work())
    assert shop.store.read("one-turn").episode.stop.value == "turn_cap"
    assert shop.store.read("many-turns").episode.stop.value == "final"


def test_a_trial_whose_engine_fails_is_one_attempt_and_a_row_without_a_valid_reward(
    shop: Shop,
) -> None:
    async def work() -> Ended | Refused:
        await shop.begin(shop.order("no-ids"))
        return (await shop.heard.ends(1))["no-ids"]

    shop.engines["works"].order(Order(fault="no ids", turn=1))
    ended = shop.play(work())
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.reward, ended.fault) == ("fault", None, "NoTokenIds")
    assert ended.fault_owner == "engine"
    assert ended.fault_message
    outcome = shop.store.read("no-ids").outcome
    assert (outcome.reward_valid, len(outcome.attempts)) == (False, 1)
    assert shop.left("no-ids") == [str(shop.yard.root / "trials/no-ids")]  # to be looked at


def test_what_the_model_does_to_its_own_box_is_its_own_and_its_reward_stands(shop: Shop) -> None:
    async def work() -> Ended | Refused:
        await shop.begin(shop.order("breaks", "breaks"))
        return (await shop.heard.ends(1))["breaks"]

    ended = shop.play(work())
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.fault, ended.fault_owner) == ("own", "KilledOwnBox", "model")
    assert ended.reward == 0.0


def test_a_trial_that_is_cancelled_while_it_acts_leaves_nothing(shop: Shop) -> None:
    async def work() -> Ended | Refused:
        await shop.begin(shop.order("stopped", "goes on", group_id="g", sample=5))
        await shop.begin(shop.order("beside"))
        await shop.heard.acts("stopped")
        assert shop.left("stopped")
        await shop.heard.crew.cancel("stopped")
        return (await shop.heard.ends(2))["stopped"]

    ended = shop.play(work())
    assert ended == Ended(trial="stopped", group="g", sample=5, outcome="cancelled")
    assert shop.left("stopped") == []
    assert "stopped" not in shop.store
    assert "beside" in shop.store


def test_a_trial_whose_process_is_killed_is_a_fault_of_the_harness_and_leaves_no_box(
    shop: Shop,
) -> None:
    async def work() -> Ended | Refused:
        await shop.begin(shop.order("killed", "goes on"))
        await shop.heard.acts("killed")
        await soon(lambda: bool(holders(shop, "trials/killed/agent/turns.journal")))
        (process,) = holders(shop, "trials/killed/agent/turns.journal")
        os.kill(process, signal.SIGKILL)
        return (await shop.heard.ends(1))["killed"]

    ended = shop.play(work())
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.fault, ended.fault_owner) == ("fault", "TrialDied", "harness")
    assert shop.left("killed") == [str(shop.yard.root / "trials/killed")]


def holders(shop: Shop, file: str) -> list[int]:
    """Processes of the crew that have a file of its root open."""
    found = processes(shop.heard.crew.ready.run_token)
    return [pid for pid in found if str(shop.yard.root / file) in opened(pid)]


def opened(pid: int) -> set[str]:
    with suppress(OSError):
        return {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return set()


def test_trials_wait_for_slots_in_order_and_can_be_cancelled_as_they_wait(shop: Shop) -> None:
    """There are two; a name is free again once its trial is said to be cancelled."""

    async def work() -> None:
        crew = shop.heard.crew
        await shop.begin(*[shop.order(name, "goes on") for name in ("w1", "w2", "w3", "w4")])
        await shop.heard.acts("w2")
        await crew.cancel("w3")
        assert isinstance((await shop.heard.ends(1))["w3"], Ended)
        await shop.begin(shop.order("w3", "goes on"))
        await crew.cancel("w1")
        await shop.heard.acts("w4")
        await crew.cancel("w2")
        await shop.heard.acts("w3")
        await crew.cancel("w3")
        await crew.cancel("w4")
        await shop.heard.until(lambda each: isinstance(each, Ended) and each.trial == "w3")
        await shop.heard.until(lambda each: isinstance(each, Gauges) and each.under_way == 0)

    shop.play(work())
    begun = [each.trial for each in shop.heard.events if isinstance(each, Begun)]
    assert begun == ["w1", "w2", "w4", "w3"]
    gauges = [each for each in shop.heard.events if isinstance(each, Gauges)]
    assert all(each.acting <= 2 for each in gauges)


def test_a_trial_that_is_cancelled_as_it_begins_is_killed_all_the_same(shop: Shop) -> None:
    names = [f"early{n}" for n in range(4)]

    async def work() -> dict[str, Ended | Refused]:
        for name in names:
            await shop.begin(shop.order(name, "goes on"))
            await shop.heard.crew.cancel(name)
            await shop.heard.crew.cancel(name)
        return await shop.heard.ends(4)

    ends = shop.play(work())
    assert [each.outcome for each in ends.values() if isinstance(each, Ended)] == ["cancelled"] * 4
    assert [each for name in names for each in shop.left(name)] == []


def test_cancelling_what_is_over_or_never_began_changes_nothing(shop: Shop) -> None:
    async def work() -> None:
        await shop.heard.crew.cancel("nobody")
        await shop.begin(shop.order("first"))
        await shop.heard.ends(1)
        await shop.heard.crew.cancel("first")
        await shop.begin(shop.order("second"))
        await shop.heard.ends(1)

    shop.play(work())
    ends = [each for each in shop.heard.events if isinstance(each, Ended)]
    assert [(each.trial, each.outcome) for each in ends] == [
        ("first", "valid"),
        ("second", "valid"),
    ]


@pytest.mark.parametrize(("keep", "stays"), [("none", []), ("all", ["bad", "good"])])
def test_the_directory_of_a_trial_stays_only_where_it_is_to_be_kept(
    shop: Shop, tmp_path: Path, keep: str, stays: list[str]
) -> None:
    """`faulted` is what the crew of the other tests keeps."""
    make_task(tmp_path / "tasks")
    yard = Yard(home=tmp_path, model=shop.yard.model, engine=shop.engines["works"].url)
    orders = [yard.order("good"), yard.order("bad", engine="http://127.0.0.1:9")]
    ends = play(ran(yard.options(keep_trials=keep), orders))
    found = {name: each.outcome for name, each in ends.items() if isinstance(each, Ended)}
    assert found == {"good": "valid", "bad": "fault"}
    assert sorted(each.name for each in (yard.root / "trials").iterdir()) == stays
    assert sorted(Store(yard.root / "trajectories").ids) == ["bad", "good"]
