# SPDX-License-Identifier: Apache-2.0
"""A sample is an answer that is whole in every part; each part that is not has its own name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.engine.answer import Answer
from envkit.agent.engine.judge import judged, version_number
from envkit.agent.types import Sampled
from envkit.fault import (
    BadLogprobs,
    EngineAborted,
    EngineError,
    EngineGarbage,
    NoLogprobs,
    NoTokenIds,
    OutOfVocabulary,
    Phase,
    PromptAltered,
    TooManyTokens,
    UnequalLengths,
    UnreadableVersion,
    UntrainableSample,
    WrongStop,
    classify,
)
from envkit.trajectory.types import Sampling

from .recorded import answer_of, asked


def sound() -> Answer:
    return Answer(
        ids=[7, 8, 2],
        logprobs=[-1.0, -0.5, 0.0],
        named=[7, 8, 2],
        spans=[{"version": "3", "start": 0, "end": 2}, {"version": "4", "start": 2, "end": 3}],
        finish="stop",
        prompt_tokens=4,
        sampled_tokens=3,
    )


def judge(answer: Answer, **more: Any) -> Sampled:
    options: dict[str, Any] = {"vocabulary": 512, "version": -1} | more
    return judged(answer, asked(max_tokens=10), **options)


def edit(**fields: Any) -> Callable[[Answer], None]:
    def change(answer: Answer) -> None:
        for name, value in fields.items():
            setattr(answer, name, value)

    return change


def span(*bounds: tuple[int, int]) -> dict[str, Any]:
    return {"spans": [{"version": "3", "start": start, "end": end} for start, end in bounds]}


REFUSED: list[tuple[str, Callable[[Answer], None], type[EngineError]]] = [
    ("no ids", edit(ids_missing=True), NoTokenIds),
    ("no end", edit(finish=None), EngineGarbage),
    ("no token", edit(ids=[]), EngineGarbage),
    ("aborted", edit(finish="abort"), EngineAborted),
    ("another reason", edit(finish="repetition"), WrongStop),
    ("stopped at what is no stop", edit(ids=[7, 8, 9], named=[7, 8, 9]), WrongStop),
    ("went on after a stop", edit(ids=[7, 2, 2], named=[7, 2, 2]), WrongStop),
    ("miscounted", edit(sampled_tokens=4), UnequalLengths),
    ("fewer logprobs", edit(logprobs=[-1.0, -0.5]), UnequalLengths),
    ("more logprobs", edit(logprobs=[-1.0, -0.5, -0.1, -0.1]), UnequalLengths),
    ("a gap between versions", edit(**span((0, 1), (2, 3))), UnequalLengths),
    ("versions too short", edit(**span((0, 2))), UnequalLengths),
    ("versions too long", edit(**span((0, 4))), UnequalLengths),
    ("versions that overlap", edit(**span((0, 2), (1, 3))), UnequalLengths),
    ("versions backwards", edit(**span((0, 3), (3, 2), (2, 3))), UnequalLengths),
    ("no logprobs", edit(logprobs_missing=True), NoLogprobs),
    ("a null logprob", edit(logprobs=[-1.0, None, 0.0]), NoLogprobs),
    ("logprobs of other tokens", edit(named=[7, 9, 2]), NoLogprobs),
    ("a positive logprob", edit(logprobs=[-1.0, 0.01, 0.0]), BadLogprobs),
    ("not a number", edit(logprobs=[-1.0, float("nan"), 0.0]), BadLogprobs),
    ("minus infinity", edit(logprobs=[-1.0, float("-inf"), 0.0]), BadLogprobs),
    ("the floor vLLM puts in its place", edit(logprobs=[-1.0, -9999.0, 0.0]), BadLogprobs),
    ("an unknown id", edit(ids=[7, 512, 2]), OutOfVocabulary),
    ("a negative id", edit(ids=[7, -1, 2]), OutOfVocabulary),
    ("a fractional id", edit(ids=[7, 8.5, 2]), OutOfVocabulary),
    ("a vast id", edit(ids=[7, 2**70, 2]), OutOfVocabulary),
    ("another prompt", edit(prompt_same=False), PromptAltered),
    ("a shorter prompt", edit(prompt_tokens=3), PromptAltered),
    ("no word of the prompt", edit(prompt_tokens=None), EngineGarbage),
]


def test_what_is_whole_is_a_sample() -> None:
    sampled = judge(sound())
    assert sampled.token_ids.tolist() == [7, 8, 2]
    assert sampled.logprobs.tolist() == [-1.0, -0.5, 0.0]
    assert sampled.weight_version.tolist() == [3, 3, 4]
    assert (sampled.finish, sampled.prompt_tokens) == ("stop", 4)
    dtypes = (sampled.token_ids.dtype, sampled.logprobs.dtype, sampled.weight_version.dtype)
    assert dtypes == (np.int32, np.float32, np.int32)


@pytest.mark.parametrize(
    ("change", "error"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_what_is_short_of_anything_is_refused_by_name(
    change: Callable[[Answer], None], error: type[EngineError]
) -> None:
    answer = sound()
    change(answer)
    with pytest.raises(error) as raised:
        judge(answer)
    assert type(raised.value) is error


def test_what_came_whole_is_never_drawn_again() -> None:
    """Drawing until an answer pleases would change the distribution."""
    for _, _, error in REFUSED:
        fault = classify(error("x"), Phase.ACT)
        assert fault.policy.retry is not issubclass(error, UntrainableSample), error


def test_more_tokens_than_asked_for_are_refused() -> None:
    answer = answer_of("generate")
    with pytest.raises(TooManyTokens):
        judged(answer, asked(max_tokens=9), vocabulary=512, version=-1)


def test_fewer_tokens_are_a_length_stop_where_the_engine_has_no_more_room() -> None:
    answer = sound()
    edit(finish="length", ids=[7, 8, 9], named=[7, 8, 9])(answer)
    assert judge(answer).finish == "length"
    full = len(asked().prompt.ids) + 3
    assert judge(answer, context=full).finish == "length"


def test_a_turn_that_ends_with_its_last_token_is_whole_whatever_the_engine_calls_it() -> None:
    answer = sound()
    edit(finish="length")(answer)
    assert judge(answer).finish == "stop"


def test_an_engine_that_caps_turns_by_itself_does_not_pass_for_a_limit_of_the_models() -> None:
    answer = sound()
    edit(finish="length", ids=[7, 8, 9], named=[7, 8, 9])(answer)
    with pytest.raises(WrongStop, match="after 3 tokens where 10 were asked for"):
        judge(answer, context=len(asked().prompt.ids) + 4)


@pytest.mark.parametrize(
    "name",
    [
        "generate",
        "generate_echo",
        "generate_stream",
        "generate_stop",
        "completions_stream",
        "completions",
        "completions_stop",
        "generate_stream_stop",
    ],
)
def test_recorded_answers_of_vllm_are_samples(name: str) -> None:
    answer = answer_of(name)
    sampled = judge(answer)
    assert sampled.token_ids.tolist() == answer.ids
    assert np.allclose(sampled.logprobs, np.array(answer.logprobs, dtype=float), atol=1e-6)
    assert set(sampled.weight_version.tolist()) == ({8} if name.startswith("gen") else {-1})


@pytest.mark.parametrize(
    ("name", "error"), [("completions_bare", NoTokenIds), ("generate_unsure", NoLogprobs)]
)
def test_recorded_answers_without_ids_or_logprobs_are_refused(
    name: str, error: type[EngineError]
) -> None:
    with pytest.raises(error):
        judge(answer_of(name))


def test_weights_that_change_inside_an_answer_are_told_by_token() -> None:
    answer = answer_of("generate_updated")
    sampled = judged(answer, asked(max_tokens=60, stop_ids=()), vocabulary=512, version=-1)
    versions = sampled.weight_version.tolist()
    assert answer.spans is not None
    starts = [each["start"] for each in answer.spans]
    assert [versions[start] for start in starts] == [8, 7, 8]
    assert [place for place in range(1, 60) if versions[place] != versions[place - 1]] == starts[1:]


@pytest.mark.parametrize(
    ("told", "number"), [("default", -1), (None, -1), ("0", 0), ("17", 17), (17, 17)]
)
def test_versions_are_numbers(told: object, number: int) -> None:
    assert version_number(told) == number


@pytest.mark.parametrize(
    "told", ["nightly", "-3", "1.5", 1.5, True, "1_0", "9" * 5000, str(2**31), []]
)
def test_versions_that_have_no_order_are_refused(told: object) -> None:
    with pytest.raises(UnreadableVersion):
        version_number(told)


def test_the_callers_word_stands_where_the_engine_knows_only_its_default() -> None:
    answer = sound()
    edit(spans=[{"version": "default", "start": 0, "end": 3}])(answer)
    assert judge(answer).weight_version.tolist() == [-1, -1, -1]
    assert judge(answer, version=5).weight_version.tolist() == [5, 5, 5]
    assert set(judge(answer_of("completions"), version=5).weight_version.tolist()) == {5}


@pytest.mark.parametrize("name", ["generate_top", "completions_top"])
def test_the_best_alternatives_come_in_order(name: str) -> None:
    question = asked(max_tokens=3, sampling=Sampling(top_logprobs=3))
    answer = answer_of(name, question)
    sampled = judged(answer, question, vocabulary=512, version=-1)
    assert sampled.topk_ids is not None
    assert sampled.topk_logprobs is not None
    assert sampled.topk_ids.shape == sampled.topk_logprobs.shape == (3, 3)
    assert (np.diff(sampled.topk_logprobs, axis=1) <= 0).all()
    assert sampled.topk_ids[0].tolist() == [388, 471, 24]


def test_alternatives_that_cannot_be_are_left_out() -> None:
    question = asked(max_tokens=1, sampling=Sampling(temperature=2.0, top_k=2, top_logprobs=3))
    sampled = judged(answer_of("generate_top_k", question), question, vocabulary=512, version=-1)
    assert sampled.topk_ids is not None
    assert sampled.topk_logprobs is not None
    assert sampled.topk_ids[0].tolist() == [388, 471, -1]
    assert np.isnan(sampled.topk_logprobs[0]).tolist() == [False, False, True]


@given(
    st.lists(st.tuples(st.integers(0, 511), st.floats(-50, 0)), min_size=1, max_size=50),
    st.data(),
)
def test_every_sound_answer_is_taken_verbatim(
    tokens: list[tuple[int, float]], data: st.DataObject
) -> None:
    ids = [each if each != 2 else 3 for each, _ in tokens]
    cut = data.draw(st.integers(0, len(ids)))
    spans = [{"version": "0", "start": 0, "end": cut}] if cut else []
    spans += [{"version": "1", "start": cut, "end": len(ids)}] if cut < len(ids) else []
    answer = Answer(
        ids=ids,
        logprobs=[each for _, each in tokens],
        named=list(ids),
        spans=spans,
        finish="length",
        prompt_tokens=4,
        sampled_tokens=len(ids),
    )
    sampled = judged(answer, asked(max_tokens=50), vocabulary=512, version=-1)
    assert sampled.token_ids.tolist() == ids
    assert sampled.weight_version.tolist() == [0] * cut + [1] * (len(ids) - cut)
    expected = np.array([each for _, each in tokens], dtype=np.float32)
    assert sampled.logprobs.tobytes() == np.minimum(expected, np.float32(0)).tobytes()


def test_what_rounding_puts_above_zero_is_a_probability_of_one_in_alternatives_too() -> None:
    answer = sound()
    rounded: list[list[tuple[int, float]]] = [[(each, 5e-5)] for each in answer.ids]
    edit(logprobs=[5e-5] * 3, alternatives=rounded)(answer)
    sampling = Sampling(top_logprobs=1)
    sampled = judged(answer, asked(sampling=sampling), vocabulary=512, version=-1)
    assert sampled.topk_logprobs is not None
    assert sampled.logprobs.max() == sampled.topk_logprobs.max() == 0.0
