# SPDX-License-Identifier: Apache-2.0
"""Whose keys and values a request may attend to: by its salt, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from envkit.agent.engine import EngineClient, EngineOptions, open_engine
from envkit.agent.types import Sampled
from envkit.fault import EngineRefused, UnreadableVersion
from envkit.retry import Backoff
from envkit.trajectory.types import Sampling

from ...engines.scripted import Order, Script, Scripted, Turn, start_scripted
from .recorded import prompt_of

pytestmark = pytest.mark.integration

IDS = [10, 11, 12, 2]
PROTOCOLS = ["generate", "completions"]


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with start_scripted(Script(turns=[Turn(ids=IDS)])) as server:
        yield server


@pytest.fixture
def engine(server: Scripted) -> Scripted:
    server.play(Script(turns=[Turn(ids=IDS)], version="5"))
    return server


def options(engine: Scripted, **more: Any) -> EngineOptions:
    soon = Backoff(tries=3, first_s=0.01, most_s=0.01)
    return EngineOptions(url=engine.url, vocabulary=512, backoff=soon, **more)


async def sample(client: EngineClient, **more: Any) -> Sampled:
    return await client.sample(
        prompt_of([1, 5, 6]),
        max_tokens=8,
        stop_ids=[2],
        sampling=Sampling(**more),
        request_id="trial-3.0",
    )


def samples(engine: Scripted, versions: tuple[str, ...], **more: Any) -> list[Sampled]:
    """Of one trajectory: one before anything changes, then one with each of these weights."""

    async def work() -> list[Sampled]:
        async with open_engine(options(engine, **more)) as client:
            done = [await sample(client)]
            for version in versions:
                await asyncio.to_thread(engine.set_version, version)
                done.append(await sample(client))
            return done

    return asyncio.run(work())


def salts(engine: Scripted) -> list[str | None]:
    """Of the requests that were sent, in order; a look for the protocol has no model."""
    sent = [each for each in engine.seen() if each["protocol"] in PROTOCOLS]
    return [each["body"].get("cache_salt") for each in sent if each["body"].get("model")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_trajectory_that_keeps_has_the_salt_of_its_first_request_for_life(
    engine: Scripted, protocol: str
) -> None:
    done = samples(engine, ("6", "7"), kv="keep", protocol=protocol)
    assert salts(engine) == ["v5"] * 3
    assert [each.kv_version for each in done] == [5, 5, 5]
    assert [set(each.weight_version.tolist()) for each in done] == [{5}, {6}, {7}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_trajectory_that_resets_has_the_salt_of_each_request(
    engine: Scripted, protocol: str
) -> None:
    done = samples(engine, ("6", "6", "7"), kv="reset", protocol=protocol)
    assert salts(engine) == ["v5", "v6", "v6", "v7"]
    assert [each.kv_version for each in done] == [5, 6, 6, 7]


def test_a_trajectory_that_shares_has_no_salt_and_tells_no_version(engine: Scripted) -> None:
    done = samples(engine, ("6",))
    assert salts(engine) == [None, None]
    assert [each.kv_version for each in done] == [-1, -1]


def test_a_salt_of_the_callers_own_comes_first(engine: Scripted) -> None:
    """Versions of two lineages may have one number."""
    samples(engine, (), kv="keep", cache_salt="lineage-2.")
    assert salts(engine) == ["lineage-2.v5"]
    samples(engine, (), cache_salt="run-7")
    assert salts(engine)[-1] == "run-7"


def test_the_version_is_asked_at_the_first_request_and_not_before(engine: Scripted) -> None:
    """A client that was opened, or looked at what logprobs are of, has not begun."""

    async def work() -> Sampled:
        async with open_engine(options(engine, kv="keep")) as client:
            await asyncio.to_thread(engine.set_version, "6")
            await client.logprobs_mode(prompt_of([1, 5, 6]), "probe")
            await asyncio.to_thread(engine.set_version, "7")
            return await sample(client)

    assert asyncio.run(work()).kv_version == 7
    assert salts(engine)[-1] == "v7"


def test_a_request_that_is_sent_again_keeps_its_salt_or_has_a_new_one(engine: Scripted) -> None:
    for kv, expected in (("keep", ["v5", "v5"]), ("reset", ["v5", "v6"])):
        engine.play(Script(turns=[Turn(ids=IDS)], version="5"))

        async def work(kv: Any = kv) -> Sampled:
            async with open_engine(options(engine, kv=kv, protocol="completions")) as client:
                return await sample(client)

        engine.order(Order(fault="update", times=1))
        assert asyncio.run(work()).tries == 2
        assert salts(engine) == expected


@pytest.mark.parametrize("kv", ["keep", "reset"])
def test_weights_that_nobody_has_named_yet_have_a_salt_and_no_version(
    engine: Scripted, kv: Any
) -> None:
    engine.set_version("default")
    (done,) = samples(engine, (), kv=kv)
    assert (salts(engine), done.kv_version) == (["v-1"], -1)


def test_an_engine_that_does_not_tell_its_version_cannot_keep_or_reset(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=IDS)], weight_info=False))
    with pytest.raises(EngineRefused, match=r"'keep' needs an engine that tells the version"):
        samples(engine, (), kv="keep")
    (done,) = samples(engine, (), kv="keep", weight_version=3)  # whose weights stay as they are
    assert (salts(engine), done.kv_version) == (["v3"], 3)


def test_a_version_that_is_no_number_ends_the_request(engine: Scripted) -> None:
    engine.set_version("nightly")
    with pytest.raises(UnreadableVersion):
        samples(engine, (), kv="keep")
