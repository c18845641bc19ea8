# SPDX-License-Identifier: Apache-2.0
"""The token stream: only appended to, and what breaks an invariant never gets in."""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.stream import TokenStream
from envkit.agent.types import Sampled
from envkit.fault import EngineError, HarnessError
from envkit.trajectory.types import Kind


def sample(after: int, ids: list[int], **more: Any) -> Sampled:
    n = len(ids)
    fields: dict[str, Any] = {
        "token_ids": np.array(ids, dtype=np.int32),
        "logprobs": np.full(n, -0.25, dtype=np.float32),
        "weight_version": np.full(n, 3, dtype=np.int32),
        "finish": "stop",
        "prompt_tokens": after,
    }
    return Sampled(**{**fields, **more})


def begun(*ids: int) -> TokenStream:
    stream = TokenStream()
    stream.begin(ids or (1, 2, 3))
    return stream


def test_segments_tile_the_stream_and_only_sampled_tokens_are_trained() -> None:
    stream = begun(1, 2, 3)
    stream.sampled(sample(3, [10, 11]), 0)
    stream.tool([20], 0)
    stream.sampled(sample(6, [12], finish="length"), 1)
    stream.harness([21, 22], 1)
    built = stream.build()

    kinds = [(s.kind, s.start, s.stop, s.turn, s.finish) for s in built.segments]
    assert kinds == [
        (Kind.PROMPT, 0, 3, 0, None),
        (Kind.MODEL, 3, 5, 0, "stop"),
        (Kind.TOOL, 5, 6, 0, None),
        (Kind.MODEL, 6, 7, 1, "length"),
        (Kind.HARNESS, 7, 9, 1, None),
    ]
    assert built.token_ids.tolist() == [1, 2, 3, 10, 11, 20, 12, 21, 22]
    assert built.loss_mask.tolist() == [False] * 3 + [True] * 2 + [False, True, False, False]
    assert built.weight_version.tolist() == [-1, -1, -1, 3, 3, -1, 3, -1, -1]
    assert np.isnan(built.logprobs[~built.loss_mask]).all()
    assert (built.logprobs[built.loss_mask] == np.float32(-0.25)).all()
    assert built.topk_ids is None


def test_the_engine_is_asked_with_the_stream_itself() -> None:
    stream = begun(5, 6)
    stream.sampled(sample(2, [7]), 0)
    assert list(stream.prompt.ids) == [5, 6, 7]
    assert bytes(stream.prompt.text) == b"5,6,7"


def test_an_observation_is_known_by_the_digest_of_its_ids() -> None:
    stream = begun(1)
    stream.sampled(sample(1, [2]), 0)
    found = stream.tool([258, 1], 0)
    assert found == hashlib.sha256(b"\x02\x01\0\0\x01\0\0\0").hexdigest()


def test_alternatives_lie_at_the_tokens_they_are_alternatives_to() -> None:
    stream = begun(1, 2)
    ids, logprobs = np.array([[4, 5]], dtype=np.int32), np.array([[-1, -2]], dtype=np.float32)
    stream.sampled(sample(2, [4], topk_ids=ids, topk_logprobs=logprobs), 0)
    stream.tool([9], 0)
    built = stream.build()
    assert built.topk_ids is not None
    assert built.topk_logprobs is not None
    assert built.topk_ids.tolist() == [[-1, -1], [-1, -1], [4, 5], [-1, -1]]
    assert np.isnan(built.topk_logprobs[[0, 1, 3]]).all()


def test_rounding_above_a_probability_of_one_is_taken_for_one() -> None:
    stream = begun(1)
    stream.sampled(sample(1, [4], logprobs=np.array([5e-5], dtype=np.float32)), 0)
    assert stream.build().logprobs[1] == 0.0


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"prompt_tokens": 4}, "counted 4 ids where it was asked with 3"),
        ({"logprobs": floats(-1.0)}, "unequal length"),
        ({"weight_version": np.zeros(3, dtype=np.int32)}, "unequal length"),
        ({"logprobs": floats(-1.0, math.nan)}, "no finite logprob"),
        ({"logprobs": floats(-1.0, -math.inf)}, "no finite logprob"),
        ({"logprobs": floats(-1.0, 0.5)}, "above zero"),
        ({"token_ids": np.array([4, -1], dtype=np.int32)}, "negative"),
        ({"topk_ids": np.zeros((2, 2), dtype=np.int32)}, "alternatives"),
    ],
)
def test_a_sample_that_breaks_an_invariant_is_the_engines_fault(
    more: dict[str, Any], said: str
) -> None:
    stream = begun()
    with pytest.raises(EngineError, match=said):
        stream.sampled(sample(3, [4, 5], **more), 0)
    assert len(stream) == 3


def test_an_engine_that_samples_nothing_is_refused() -> None:
    with pytest.raises(EngineError, match="sampled nothing"):
        begun().sampled(sample(3, []), 0)


def twice(stream: TokenStream) -> None:
    stream.begin([1])


def backwards(stream: TokenStream) -> None:
    stream.sampled(sample(3, [1]), 2)
    stream.tool([1], 1)


def unanswered(stream: TokenStream) -> None:
    stream.sampled(sample(3, [1]), 0)
    stream.sampled(sample(4, [1]), 1)


def no_id(stream: TokenStream) -> None:
    stream.harness([2**31], 0)


@pytest.mark.parametrize("wrong", [twice, backwards, unanswered, no_id])
def test_what_the_loop_may_not_do_is_refused_at_once(wrong: Callable[[TokenStream], None]) -> None:
    with pytest.raises(HarnessError):
        wrong(begun())


@pytest.mark.parametrize("what", ["tool", "harness"])
def test_nothing_comes_before_the_prompt(what: str) -> None:
    with pytest.raises(HarnessError, match="begins with its prompt"):
        getattr(TokenStream(), what)([1], 0)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(HarnessError, match="no tokens"):
        TokenStream().begin([])


def test_nothing_adds_no_segment() -> None:
    stream = begun()
    stream.harness([], 0)
    assert len(stream.build().segments) == 1


ids = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8)


@given(st.lists(st.tuples(ids, ids), max_size=6))
def test_whatever_is_added_comes_out_verbatim(turns: list[tuple[list[int], list[int]]]) -> None:
    stream, whole = begun(1), [1]
    for turn, (said, answered) in enumerate(turns):
        stream.sampled(sample(len(stream), said), turn)
        stream.tool(answered, turn)
        whole += said + answered
    built = stream.build()
    assert built.token_ids.tolist() == whole
    assert bytes(stream.prompt.text) == ",".join(map(str, whole)).encode()
    assert [s.start for s in built.segments[1:]] == [s.stop for s in built.segments[:-1]]
    assert built.segments[-1].stop == len(whole)
