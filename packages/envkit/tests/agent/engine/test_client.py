# SPDX-License-Identifier: Apache-2.0
"""The client over loopback: what it survives, what it names, and what it leaves at the engine."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from envkit.agent.engine import EngineClient, EngineOptions, open_engine
from envkit.agent.types import Sampled
from envkit.deadline import Budgets, DeadlineExceeded
from envkit.fault import (
    BadLogprobs,
    EngineAborted,
    EngineBusy,
    EngineFailed,
    EngineGarbage,
    EngineRefused,
    EngineUnreachable,
    EnvkitError,
    HarnessError,
    NoLogprobs,
    NoTokenIds,
    OtherDistribution,
    OutOfVocabulary,
    Owner,
    Phase,
    PromptAltered,
    PromptTooLong,
    TooManyTokens,
    UnequalLengths,
    UnreadableVersion,
    WeightsChanged,
    WrongStop,
    classify,
)
from envkit.retry import Backoff
from envkit.trajectory.types import Sampling

from ...engines.scripted import Order, Script, Scripted, Turn, start_scripted
from .recorded import prompt_of

pytestmark = pytest.mark.integration

IDS = [10, 11, 12, 13, 14, 15, 16, 17, 18, 2]
PROMPT = [1, 5, 6]
SOON = Backoff(tries=3, first_s=0.01, most_s=0.01)
BUDGETS = Budgets(generate_s=1.5, generate_idle_s=1.0)
LATER = Budgets(generate_s=20.0, generate_idle_s=20.0)
PROTOCOLS = ["generate", "completions"]

type Use = Callable[[EngineClient], Awaitable[Any]]


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with start_scripted(Script(turns=[Turn(ids=IDS)])) as server:
        yield server


@pytest.fixture
def engine(server: Scripted) -> Scripted:
    server.play(Script(turns=[Turn(ids=IDS)]))
    return server


def options(engine: Scripted, **more: Any) -> EngineOptions:
    kept: dict[str, Any] = {"backoff": SOON, "budgets": LATER, "vocabulary": 512} | more
    return EngineOptions(url=engine.url, **kept)


def used(options: EngineOptions, use: Use) -> Any:
    async def run() -> Any:
        async with open_engine(options) as client:
            return await use(client)

    return asyncio.run(run())


async def sample(
    client: EngineClient, sampling: Sampling | None = None, *, most: int = 64
) -> Sampled:
    return await client.sample(
        prompt_of(PROMPT),
        max_tokens=most,
        stop_ids=[2],
        sampling=sampling or Sampling(),
        request_id="trial-3.0",
    )


def sampled(engine: Scripted, **more: Any) -> Sampled:
    return used(options(engine, **more), sample)


def requests(engine: Scripted) -> list[dict[str, Any]]:
    return [each for each in engine.seen() if each["protocol"] in PROTOCOLS]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_sample_is_what_the_engine_said(engine: Scripted, protocol: str, stream: bool) -> None:
    done = sampled(engine, protocol=protocol, stream=stream)
    assert done.token_ids.tolist() == IDS
    assert (done.finish, done.prompt_tokens, done.tries) == ("stop", 3, 1)
    assert (done.logprobs <= 0).all()
    assert 0 <= done.queued_s <= done.first_token_s <= done.seconds


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_engine_that_streams_nothing_is_read_whole(engine: Scripted, protocol: str) -> None:
    engine.play(Script(turns=[Turn(ids=IDS)], streams=False))
    done = sampled(engine, protocol=protocol)
    assert done.token_ids.tolist() == IDS
    assert done.first_token_s == done.seconds


def test_both_protocols_and_both_ways_give_the_same_logprobs(engine: Scripted) -> None:
    ways = [(protocol, stream) for protocol in PROTOCOLS for stream in (True, False)]
    done = [
        sampled(engine, protocol=each, stream=stream).logprobs.tobytes() for each, stream in ways
    ]
    assert len(set(done)) == 1


def test_what_the_engine_says_of_itself_is_its_identity(engine: Scripted) -> None:
    async def use(client: EngineClient) -> Any:
        return client.identity, client.context_tokens

    identity, context = used(options(engine), use)
    assert (identity.model, identity.server) == ("tiny", "vllm 0.32.0")
    assert (identity.protocol, context) == ("generate", 32_768)


def test_an_engine_without_generate_is_asked_for_completions(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=IDS)], protocols=["completions"]))
    assert sampled(engine).token_ids.tolist() == IDS
    with pytest.raises(EngineRefused, match="--enable-scale-out"):
        sampled(engine, protocol="generate")


def test_a_model_that_is_not_served_is_named_with_those_that_are(engine: Scripted) -> None:
    with pytest.raises(EngineRefused, match="'large' is not served: tiny is"):
        sampled(engine, model="large")


@pytest.mark.parametrize("url", ["localhost:8000", "", "http://", "ftp://host"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(EngineRefused, match="http://HOST:PORT"):
        used(EngineOptions(url=url, backoff=SOON), sample)


def test_nobody_there_is_tried_and_then_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(EngineUnreachable):
        used(EngineOptions(url=url, backoff=SOON), sample)


def test_one_connection_serves_requests_that_follow_each_other(engine: Scripted) -> None:
    async def use(client: EngineClient) -> None:
        for _ in range(5):
            await sample(client)

    used(options(engine), use)
    assert len({each["port"] for each in requests(engine)}) == 1


PASSING: list[tuple[str, type[EnvkitError]]] = [
    ("busy", EngineBusy),
    ("unavailable", EngineBusy),
    ("failed", EngineFailed),
    ("hang up", EngineUnreachable),
    ("drop", EngineUnreachable),
    ("garbage", EngineGarbage),
    ("not json", EngineGarbage),
    ("wrong json", EngineGarbage),
    ("html", EngineGarbage),
    ("garbage event", EngineGarbage),
    ("error event", EngineFailed),
    ("abort", EngineAborted),
]


@pytest.mark.parametrize(("fault", "error"), PASSING)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_passing_fault_is_survived_with_the_same_ids_and_a_lasting_one_named(
    engine: Scripted, fault: str, error: type[EnvkitError], protocol: str
) -> None:
    engine.order(Order(fault=fault, times=2))
    done = sampled(engine, protocol=protocol)
    assert (done.token_ids.tolist(), done.tries) == (IDS, 3)
    assert done.queued_s > 0
    prompts = [each["body"].get("token_ids") or each["body"]["prompt"] for each in requests(engine)]
    assert prompts == [PROMPT] * 3
    assert len({each["body"]["request_id"] for each in requests(engine)}) == 3
    engine.order(Order(fault=fault, times=0))
    with pytest.raises(error) as raised:
        sampled(engine, protocol=protocol)
    assert type(raised.value) is error


def test_parts_that_are_not_the_protocol_are_named_whoever_reads_them(engine: Scripted) -> None:
    engine.order(Order(fault="spans without ends", times=0))
    with pytest.raises(EngineGarbage, match="not the protocol generate"):
        sampled(engine)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_alternative_that_no_id_can_be_is_not_the_protocol(
    engine: Scripted, protocol: str
) -> None:
    engine.order(Order(fault="vast candidate", times=0))
    with pytest.raises(EngineGarbage, match=f"not the protocol {protocol}"):
        used(
            options(engine, protocol=protocol),
            lambda client: sample(client, Sampling(top_logprobs=2)),
        )


@pytest.mark.parametrize(("fault", "op"), [("silent", "generate"), ("stall", "generate_idle")])
def test_silence_is_a_fault_of_the_engine_and_tried_again(
    engine: Scripted, fault: str, op: str
) -> None:
    engine.order(Order(fault=fault))
    assert sampled(engine, budgets=BUDGETS).tries == 2
    engine.order(Order(fault=fault, times=0))
    with pytest.raises(DeadlineExceeded) as raised:
        sampled(engine, budgets=BUDGETS, backoff=Backoff(tries=1))
    assert raised.value.op == op
    assert classify(raised.value, Phase.ACT).owner is Owner.ENGINE


LASTING: list[tuple[str, type[EnvkitError]]] = [
    ("refused", EngineRefused),
    ("overflow", PromptTooLong),
    ("no ids", NoTokenIds),
    ("no logprobs", NoLogprobs),
    ("unequal logprobs", UnequalLengths),
    ("spans with a gap", UnequalLengths),
    ("miscounted", UnequalLengths),
    ("another token", NoLogprobs),
    ("null logprob", NoLogprobs),
    ("positive logprob", BadLogprobs),
    ("floored logprob", BadLogprobs),
    ("foreign id", OutOfVocabulary),
    ("altered prompt", PromptAltered),
    ("repetition", WrongStop),
    ("named version", UnreadableVersion),
]


OF_VERSIONS = ("spans with a gap", "named version")
"""Told by ``generate`` alone."""


@pytest.mark.parametrize(
    ("protocol", "fault", "error"),
    [
        (protocol, fault, error)
        for protocol in PROTOCOLS
        for fault, error in LASTING
        if protocol == "generate" or fault not in OF_VERSIONS
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_would_be_so_again_is_named_at_once(
    engine: Scripted, fault: str, error: type[EnvkitError], protocol: str, stream: bool
) -> None:
    engine.order(Order(fault=fault))
    with pytest.raises(error) as raised:
        sampled(engine, protocol=protocol, stream=stream)
    assert type(raised.value) is error
    assert len(requests(engine)) == 1


def test_a_stop_where_none_was_to_be_is_refused(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=[10, 11])], orders=[Order(fault="wrong stop")]))
    with pytest.raises(WrongStop, match="at id 11"):
        sampled(engine)


def test_more_than_was_asked_for_is_refused(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=[9] * 40)], orders=[Order(fault="too many")]))
    with pytest.raises(TooManyTokens):
        sampled(engine)


def test_a_turn_that_uses_up_its_tokens_ends_by_length(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=[9] * 100)]))
    done = sampled(engine)
    assert (len(done.token_ids), done.finish) == (64, "length")


def test_a_stream_that_goes_on_is_never_cut(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=[9] * 63 + [2])], interval=1))
    engine.order(Order(fault="slow", seconds=0.02))
    budgets = Budgets(generate_s=1.0, generate_idle_s=1.0)
    done = sampled(engine, budgets=budgets, stream_interval=1)
    assert (len(done.token_ids), done.tries) == (64, 1)
    assert done.seconds > 64 * 0.02
    assert done.first_token_s == done.queued_s < done.seconds


def test_weights_that_change_inside_a_request_are_told_by_token(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=IDS, versions=[("7", 0), ("8", 3), ("9", 9)])]))
    assert sampled(engine).weight_version.tolist() == [7] * 3 + [8] * 6 + [9]


def test_tokens_whose_versions_are_not_told_have_the_callers(engine: Scripted) -> None:
    engine.order(Order(fault="no spans", times=0))
    assert set(sampled(engine).weight_version.tolist()) == {-1}
    assert set(sampled(engine, weight_version=4).weight_version.tolist()) == {4}


def test_completions_have_the_version_the_engine_tells_before_and_after(engine: Scripted) -> None:
    said = sampled(engine, protocol="completions", weight_version=4)
    assert set(said.weight_version.tolist()) == {4}, "default is no version"
    engine.set_version("6")
    for fixed in (-1, 4):
        done = sampled(engine, protocol="completions", weight_version=fixed)
        assert set(done.weight_version.tolist()) == {6}
    engine.play(Script(turns=[Turn(ids=IDS)], weight_info=False))
    assert set(sampled(engine, protocol="completions").weight_version.tolist()) == {-1}
    done = sampled(engine, protocol="completions", weight_version=4)
    assert set(done.weight_version.tolist()) == {4}


def test_completions_over_a_weight_update_are_drawn_again(engine: Scripted) -> None:
    """Nobody can tell then which weights sampled a token."""
    engine.play(Script(turns=[Turn(ids=IDS)], version="1"))
    engine.order(Order(fault="update", times=1))
    done = sampled(engine, protocol="completions")
    assert done.tries == 2
    assert set(done.weight_version.tolist()) == {2}
    engine.order(Order(fault="update", times=0))
    with pytest.raises(WeightsChanged):
        sampled(engine, protocol="completions")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.7),
        Sampling(temperature=0.0),
        Sampling(top_p=0.9),
        Sampling(top_k=20),
        Sampling(min_p=0.05),
        Sampling(repetition_penalty=1.1),
    ],
    ids=["temperature", "greedy", "top_p", "top_k", "min_p", "penalty"],
)
def test_logprobs_of_another_distribution_are_refused_and_said_how_to_mend(
    engine: Scripted, protocol: str, sampling: Sampling
) -> None:
    async def use(client: EngineClient) -> Sampled:
        return await sample(client, sampling, most=len(IDS))

    done: Sampled = used(options(engine, protocol=protocol), use)
    assert bool(done.logprobs.any()) is (sampling.temperature > 0.0)
    engine.play(Script(turns=[Turn(ids=IDS)], raw=True))
    with pytest.raises(OtherDistribution, match="--logprobs-mode processed_logprobs"):
        used(options(engine, protocol=protocol), use)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_engine_that_cuts_turns_short_is_refused(engine: Scripted, protocol: str) -> None:
    """As vLLM does where the generation_config.json of a model says how long turns are."""
    engine.play(Script(turns=[Turn(ids=IDS[:6], finish="length")]))
    with pytest.raises(WrongStop, match="after 6 tokens where 64 were asked for"):
        sampled(engine, protocol=protocol)


def test_an_engine_is_asked_once_for_its_distribution(engine: Scripted) -> None:
    async def use(client: EngineClient) -> None:
        for _ in range(3):
            await sample(client, Sampling(temperature=0.7))

    used(options(engine), use)
    assert len(requests(engine)) == 2 + 3
    used(options(engine, logprobs_mode="processed"), use)
    assert len(requests(engine)) == 5 + 3


def test_the_models_own_distribution_needs_no_asking(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=IDS)], raw=True))
    assert sampled(engine).token_ids.tolist() == IDS
    assert len(requests(engine)) == 1


def test_a_cancelled_request_is_ended_at_the_engine(engine: Scripted) -> None:
    engine.order(Order(fault="stall"))

    async def use(client: EngineClient) -> None:
        request = asyncio.create_task(sample(client))
        while not any(each["events"] for each in requests(engine)):  # noqa: ASYNC110
            await asyncio.sleep(0)  # it happens in another process
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    used(options(engine), use)
    aborts = [each["name"] for each in engine.seen() if each["protocol"] == "abort"]
    assert aborts == ["generate-tokens-trial-3.0.1"]
    assert requests(engine)[0]["ended"] in ("dropped", "aborted")


@pytest.mark.parametrize(
    ("protocol", "name"),
    [("generate", "generate-tokens-trial-3.0.1"), ("completions", "cmpl-trial-3.0.1-0")],
)
def test_a_request_that_fell_silent_is_ended_at_the_engine(
    engine: Scripted, protocol: str, name: str
) -> None:
    engine.order(Order(fault="stall"))
    assert sampled(engine, protocol=protocol, budgets=BUDGETS).tries == 2
    assert [each["name"] for each in engine.seen() if each["protocol"] == "abort"] == [name]


def test_the_engines_own_word_for_the_next_try_is_heeded(engine: Scripted) -> None:
    engine.order(Order(fault="busy", seconds=0.4))
    done = sampled(engine)
    assert done.tries == 2
    assert done.queued_s >= 0.4


def test_a_prompt_that_leaves_no_room_is_the_harness_own_fault(engine: Scripted) -> None:
    engine.play(Script(turns=[Turn(ids=IDS)], context=3))
    with pytest.raises(PromptTooLong, match="3 tokens"):
        sampled(engine)
    assert requests(engine) == []


def test_nothing_to_sample_is_the_harness_own_fault(engine: Scripted) -> None:
    async def use(client: EngineClient) -> None:
        empty = prompt_of([])
        await client.sample(
            empty, max_tokens=1, stop_ids=[2], sampling=Sampling(), request_id="trial"
        )

    with pytest.raises(HarnessError):
        used(options(engine), use)


def test_an_engine_that_dies_is_named_and_one_that_comes_back_goes_on() -> None:
    script = Script(turns=[Turn(ids=IDS)], orders=[Order(fault="die")])
    with start_scripted(script) as first:
        with pytest.raises(EngineUnreachable):
            sampled(first)
        first.process.wait()
        port = int(first.url.rpartition(":")[2])
        with start_scripted(replace(script, orders=[], port=port)) as second:
            assert second.url == first.url
            assert sampled(second).token_ids.tolist() == IDS


def test_many_loops_share_an_engine_and_each_gets_its_own_turns(engine: Scripted) -> None:
    turns = [Turn(ids=[20 + number, 2]) for number in range(4)]
    engine.play(Script(turns=turns))

    async def loop(client: EngineClient, number: int) -> list[int]:
        prompt = prompt_of([1, 100 + number])
        for turn in range(4):
            done = await client.sample(
                prompt,
                max_tokens=8,
                stop_ids=[2],
                sampling=Sampling(),
                request_id=f"trial-{number}.{turn}",
            )
            prompt.extend(done.token_ids.tolist())
            prompt.extend([7])
        return list(prompt.ids)

    async def use(client: EngineClient) -> list[list[int]]:
        return await asyncio.gather(*(loop(client, number) for number in range(16)))

    said = [each for number in range(4) for each in (20 + number, 2, 7)]
    assert used(options(engine), use) == [[1, 100 + number, *said] for number in range(16)]
