# SPDX-License-Identifier: Apache-2.0
"""A sample is what the engine sampled, of a distribution that a trainer makes again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from envkit.trajectory.types import Sampling
from rltrain.batch.sample import OtherDistribution, Sample

from .made import trajectory


def test_a_sample_is_the_stream_with_its_worth() -> None:
    row = trajectory()
    made = Sample.of(row)
    assert made.token_ids is row.episode.stream.token_ids
    assert (len(made), made.trained, made.environment_tokens) == (18, 8, 6)
    assert (made.reward, made.valid, made.live, made.temperature) == (0.5, True, True, 1.0)
    assert np.isfinite(made.logprobs[made.mask]).all()


def test_a_reward_that_is_not_valid_stays_so() -> None:
    row = trajectory()
    outcome = replace(row.outcome, reward=None, reward_valid=False, loss_live=False)
    made = Sample.of(replace(row, outcome=outcome))
    assert (made.reward, made.valid, made.live) == (None, False, False)


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (Sampling(top_p=0.9), "top_p 0.9"),
        (Sampling(top_k=50), "top_k 50"),
        (Sampling(min_p=0.1), "min_p 0.1"),
        (Sampling(presence_penalty=0.5), "presence_penalty 0.5"),
        (Sampling(repetition_penalty=1.1), "repetition_penalty 1.1"),
        (Sampling(grammar="root ::= x"), "grammar"),
        (Sampling(temperature=0.0), "temperature 0 leaves no choice"),
        (Sampling(temperature=0.7), "log-probs are of temperature 1, and 0.7"),
    ],
)
def test_a_distribution_that_no_trainer_makes_is_refused(sampling: Sampling, said: str) -> None:
    with pytest.raises(OtherDistribution, match=f"task__000: .*{said}"):
        Sample.of(trajectory(sampling=sampling))


def test_processed_logprobs_may_be_of_another_temperature() -> None:
    row = trajectory(sampling=Sampling(temperature=0.7, logprobs_mode="processed"))
    assert Sample.of(row).temperature == 0.7


def test_a_sampled_token_has_the_oldest_weights_whose_keys_its_request_could_attend_to() -> None:
    row = trajectory()
    requests = tuple(
        replace(each, kv_version=version)
        for each, version in zip(row.episode.requests, (5, -1), strict=True)
    )
    row = replace(row, episode=replace(row.episode, requests=requests))
    oldest = Sample.of(row).kv_version
    assert oldest is not None
    assert oldest.tolist() == [-1] * 4 + [5] * 5 + [-1] * 9
