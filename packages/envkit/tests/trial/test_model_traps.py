# SPDX-License-Identifier: Apache-2.0
"""Trials of a model in which other harnesses lose a reward, repeat work, or store it many times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.config import TrialConfig

from envkit.agent.prompt import SYSTEM
from envkit.agent.show import NUDGE
from envkit.agent.types import CallRequest
from envkit.fault import Owner
from envkit.trajectory.types import Kind, Stop

from ..engines.scripted import Order
from .conftest import PlayOnce
from .scripted_model import DONE, Play, Played

pytestmark = pytest.mark.integration

ANSWER = "forty-two"
LIST = CallRequest(name="filesystem_server_list_files", arguments={"path": "/"})
LIMITS = {"turns": 4, "nudge_ratio": 0.99}
"""The nudge is due at once."""
TURNS = 12

PLAYS = {
    "verifier_fails": Play(turns=[[DONE], ANSWER], task={"verify": "#!/bin/bash\nexit 1\n"}),
    "engine_fails": Play(turns=[[DONE], ANSWER], orders=[Order(fault="failed", turn=1, times=0)]),
    "trained": Play(turns=[[LIST]] * 9, settings={"limits": LIMITS}),
    "evaluated": Play(turns=[[LIST]] * 9, settings={"limits": LIMITS, "evaluation": True}),
    "many_turns": Play(turns=[*[[LIST]] * (TURNS - 1), ANSWER]),
}


@pytest.fixture(scope="module")
def played(play_once: PlayOnce) -> dict[str, Played]:
    return play_once("traps", PLAYS)


def generated(mine: Played) -> list[dict[str, Any]]:
    return [each["body"] for each in mine.engine if each["protocol"] == "generate"]


def turns_asked(mine: Played) -> list[list[int]]:
    """Prompts of the episode's requests, as the engine saw them."""
    first = mine.episode.requests[0].prompt_tokens
    ids = [each["token_ids"] for each in generated(mine)]
    return [each for each in ids if len(each) >= first]


def test_a_verifier_that_fails_is_no_reason_to_run_the_model_again(
    played: dict[str, Played],
) -> None:
    mine = played["verifier_fails"]
    record = mine.record
    assert (record.reward, record.reward_valid, record.verdict) == (None, False, "no_verdict")
    assert record.fault is not None
    assert record.fault.owner is Owner.VERIFIER
    assert len(record.attempts) == 1
    assert len(turns_asked(mine)) == 2, "each turn was sampled once"
    assert (mine.episode.stop, mine.episode.final_answer) == (Stop.FINAL, ANSWER)
    assert list(mine.directory.glob("artifacts/**/done.txt")), "what is graded again is there"


def test_what_was_earned_until_the_engine_failed_is_no_valid_reward(
    played: dict[str, Played],
) -> None:
    record = played["engine_fails"].record
    graded = "override_error_policy" in TrialConfig.model_fields  # Harbor 0.25 does not grade it
    assert record.reward == (0.5 if graded else None), "the premise: the verifier gave one"
    assert not record.reward_valid
    assert record.fault is not None
    assert record.fault.owner is Owner.ENGINE


def test_an_evaluation_has_the_prompt_the_steps_and_the_sampling_of_training(
    played: dict[str, Played],
) -> None:
    trained, evaluated = played["trained"], played["evaluated"]
    prompts = [turns_asked(each)[0] for each in (trained, evaluated)]
    assert prompts[0] == prompts[1]
    assert trained.episode.limits == evaluated.episode.limits
    assert trained.episode.used.turns == evaluated.episode.used.turns == 4
    assert trained.episode.stop is evaluated.episode.stop is Stop.TURN_CAP
    sampling = [generated(each)[0]["sampling_params"] for each in (trained, evaluated)]
    assert sampling[0] == sampling[1]
    told = [sum(NUDGE in text for text in each.texts(Kind.TOOL)) for each in (trained, evaluated)]
    assert told == [1, 0], "the one difference"


def test_a_prompt_is_stored_once_however_many_turns_follow_it(played: dict[str, Played]) -> None:
    mine = played["many_turns"]
    assert mine.episode.used.turns == TURNS
    stream = mine.episode.stream
    prompt = stream.token_ids[: stream.segments[0].stop].astype("<i4").tobytes()
    found = {"text": 0, "ids": 0}
    for path in _files(mine.directory):
        data = path.read_bytes()
        found["text"] += data.count(SYSTEM.splitlines()[0].encode())
        found["ids"] += data.count(prompt)
    assert found == {"text": 1, "ids": 1}


def test_what_a_trial_stores_grows_with_its_tokens(played: dict[str, Played]) -> None:
    mine = played["many_turns"]
    stored = sum(path.stat().st_size for path in _files(mine.directory / "agent"))
    tokens = len(mine.episode.stream.token_ids)
    asked = sum(map(len, turns_asked(mine)))
    assert asked > 5 * tokens, "the premise: each turn was asked with all before it"
    assert stored < 48 * tokens, "arrays of 12 bytes a token, and its text"


def _files(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]
