# SPDX-License-Identifier: Apache-2.0
"""What a trainer is handed is what the real engine sampled."""

from pathlib import Path
from typing import Any

import pytest

from envkit.agent.engine.serve import Served

from . import proof, recorder, rollouts


@pytest.fixture(scope="session")
def figures(
    engine: Served, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """32 trials, and a few with too few tokens a turn, seen by a witness before the engine."""
    place = tmp_path_factory.mktemp("rollouts")
    wire = place / "wire.jsonl"
    with rollouts.recording(engine.url, wire) as url:
        ran = rollouts.run(place / "out", proof.specs(place / "out", url, checkpoint))
    whole, short = ran[: proof.TRIALS], ran[proof.TRIALS :]
    seen = list(recorder.seen(wire))
    return proof.figures(whole, short, seen, checkpoint, (engine.url, engine.model))


def test_three_valid_tool_calls_are_made_in_most_trials(figures: dict[str, Any]) -> None:
    assert figures["trials"] == 32
    assert figures["with_three_good_calls"] >= 24, figures["good_calls"]
    assert len(figures["families"]) >= 3


def test_every_token_is_the_one_that_the_engine_returned(figures: dict[str, Any]) -> None:
    assert figures["not_as_returned"] == []
    assert figures["turns"] > 100


def test_the_engine_scores_the_stored_ids_as_it_sampled_them(figures: dict[str, Any]) -> None:
    assert figures["rescored"]["tokens"] == figures["sampled_tokens"]
    assert figures["rescored"]["mean"] <= 1e-4, figures["rescored"]


def test_the_policy_succeeds_sometimes(figures: dict[str, Any]) -> None:
    """It guesses one of three: fewer than 2 or more than 21 of 32 come less than once in 1,000."""
    assert figures["reward_valid"] == figures["trials"]
    assert 2 <= figures["succeeded"] <= 21, figures["rewards"]


def test_text_tokenised_again_would_be_other_ids_somewhere(figures: dict[str, Any]) -> None:
    assert figures["turns_tokenised_otherwise"] > 0


def test_turns_are_cut_off_by_their_tokens_too(figures: dict[str, Any]) -> None:
    assert figures["finishes"]["length"] > 0
    assert figures["stops"]["length"] > 0


def test_parallel_calls_are_answered_in_one_segment(figures: dict[str, Any]) -> None:
    assert figures["parallel_turns"] > 10


def test_a_stop_token_spelt_out_in_a_result_is_text(figures: dict[str, Any]) -> None:
    assert all(figures["special_text_in_results"].values()), figures["special_text_in_results"]
    assert len(figures["special_text_in_results"]) >= 3
