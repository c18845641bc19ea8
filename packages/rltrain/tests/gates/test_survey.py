# SPDX-License-Identifier: Apache-2.0
"""Rows are taken evenly, and of them what one version of the weights sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from envkit.trajectory.types import Trajectory
from rltrain.gates.survey import RowSeen, Survey
from rltrain.gates.taken import Row, not_stale

from ..batch.made import trajectory


def seen(*counts: int) -> Survey:
    rows = [
        RowSeen(
            trajectory_id=str(number),
            comparable={0: count} if count else {},
            sampled=count,
            highest_id=9,
            floored=0,
            tokenizer_digest="",
            model_digest="",
            other="",
        )
        for number, count in enumerate(counts)
    ]
    return Survey(rows=rows)


@pytest.mark.parametrize(
    ("counts", "tokens", "expected"),
    [
        ([10, 10, 10, 10], 100, "0123"),
        ([10, 10, 10, 10], 20, "02"),
        ([10] * 9, 30, "036"),
        ([0, 10, 0, 10], 20, "13"),
        ([1000], 10, "0"),
        ([], 10, ""),
    ],
)
def test_rows_are_taken_evenly_over_the_store(
    counts: list[int], tokens: int, expected: str
) -> None:
    assert "".join(seen(*counts).chosen(0, tokens)) == expected


def test_of_another_version_there_are_none() -> None:
    assert list(seen(10, 10).chosen(1, 20)) == []


def with_versions(versions: list[int], kv_versions: list[int]) -> Trajectory:
    """Of the eight tokens sampled, and of the two requests."""
    row = trajectory()
    stream, requests = row.episode.stream, row.episode.requests
    of_all = np.full(len(stream.token_ids), -1, np.int32)
    of_all[stream.loss_mask] = versions
    episode = replace(
        row.episode,
        stream=replace(stream, weight_version=of_all),
        requests=tuple(
            replace(each, kv_version=kv) for each, kv in zip(requests, kv_versions, strict=True)
        ),
    )
    return replace(row, episode=episode)


@pytest.mark.parametrize(
    ("versions", "kv_versions", "version", "places"),
    [
        ([3] * 8, [-1, -1], 3, [4, 5, 6, 7, 8, 15, 16, 17]),
        ([3] * 8, [3, 2], 3, [4, 5, 6, 7, 8]),
        ([3, 3, 4, 4, 4, 4, 4, 4], [3, 4], 4, [15, 16, 17]),
        ([3, 3, 4, 4, 4, 4, 4, 4], [3, 4], 3, [4, 5]),
        ([-1] * 8, [-1, -1], -1, [4, 5, 6, 7, 8, 15, 16, 17]),
        ([3] * 8, [-1, -1], 4, []),
    ],
)
def test_a_token_counts_with_its_version_and_nothing_older(
    versions: list[int], kv_versions: list[int], version: int, places: list[int]
) -> None:
    row = Row.of(with_versions(versions, kv_versions), version)
    assert row.places.tolist() == places


def test_what_stands_for_minus_infinity_does_not_count() -> None:
    row = trajectory()
    logprobs = row.episode.stream.logprobs.copy()
    logprobs[5] = -9999.0
    stream = replace(row.episode.stream, logprobs=logprobs)
    mask = not_stale(replace(row, episode=replace(row.episode, stream=stream)))
    assert np.flatnonzero(mask).tolist() == [4, 6, 7, 8, 15, 16, 17]


def test_turns_are_those_of_the_model_alone() -> None:
    row = Row.of(trajectory(), version=7)
    assert [(turn, places.tolist()) for turn, places in row.turns()] == [
        (0, [4, 5, 6, 7, 8]),
        (1, [15, 16, 17]),
    ]
