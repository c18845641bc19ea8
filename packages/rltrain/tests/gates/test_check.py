# SPDX-License-Identifier: Apache-2.0
"""A check passes what a policy really sampled, and names what is wrong with what it did not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envkit.trajectory.types import Sampling, Trajectory
from envkit.trajectory.weights import weights_digest
from rltrain.gates.check import check
from rltrain.gates.options import Options
from rltrain.gates.report import Report
from rltrain.refused import Refused

from . import spoiled
from .conftest import Ground

pytestmark = pytest.mark.trainer

SAMPLED = 2560
"""Tokens of the honest store."""


def checked(store: Path, policy: Path, **more: Any) -> Report:
    return check(Options(store=store, policy=policy, **more))


def of(rows: Iterable[Trajectory], place: Path, policy: Path, **more: Any) -> Report:
    return checked(spoiled.write(place / "store", rows), policy, **more)


def codes(report: Report) -> list[str]:
    return [each.code for each in report.causes]


def evidence(report: Report) -> str:
    (cause,) = report.causes
    return "\n".join((cause.says, *cause.evidence))


# --- what passes ----------------------------------------------------------------------------------


def test_what_the_policy_sampled_passes(ground: Ground) -> None:
    report = checked(ground.honest, ground.policy)
    assert (report.verdict, report.exit_code, report.causes) == ("PASS", 0, ())
    assert report.figures is not None
    assert report.figures.tokens == SAMPLED
    assert report.figures.most < 1e-4
    assert sum(each.tokens for each in report.histogram) == SAMPLED
    assert [each.turn for each in report.turns] == [0, 1]
    assert len(report.worst) == 10


def test_another_temperature_that_is_recorded_passes(ground: Ground, tmp_path: Path) -> None:
    assert of(ground.cool, tmp_path, ground.policy).verdict == "PASS"


def test_rows_of_several_temperatures_are_scored_each_at_its_own(
    ground: Ground, tmp_path: Path
) -> None:
    cool = [
        replace(row, identity=replace(row.identity, trajectory_id=f"{n}__cool"))
        for n, row in enumerate(ground.cool)
    ]
    report = of([*ground.rows, *cool], tmp_path, ground.policy)
    assert report.verdict == "PASS"
    assert report.figures is not None
    assert report.figures.tokens == 2 * SAMPLED


def test_rows_that_name_the_policys_weights_pass(ground: Ground, tmp_path: Path) -> None:
    digest = weights_digest(ground.policy)
    report = of((spoiled.of_model(row, digest) for row in ground.rows), tmp_path, ground.policy)
    assert (report.verdict, report.notes) == ("PASS", ())


def test_a_checkpoint_that_was_cut_into_more_files_is_the_same_policy(
    ground: Ground, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    policy = tmp_path / "policy"
    model = AutoModelForCausalLM.from_pretrained(ground.policy)
    model.save_pretrained(policy, max_shard_size="30KB")
    shutil.copy(ground.policy / "tokenizer.json", policy)
    assert len(list(policy.glob("*.safetensors"))) > 2
    digest = weights_digest(ground.policy)
    assert weights_digest(policy) == digest
    rows = [spoiled.of_model(row, digest) for row in ground.rows]
    assert of(rows, tmp_path, policy).verdict == "PASS"


def test_only_so_many_tokens_are_scored_and_evenly_over_the_store(ground: Ground) -> None:
    report = checked(ground.honest, ground.policy, tokens=640, least=500)
    assert report.figures is not None
    assert report.figures.tokens == 640
    assert {each.trajectory_id[:6] for each in report.worst} > {"task-0", "task-7"}


def test_packing_does_not_matter(ground: Ground) -> None:
    alone = checked(ground.honest, ground.policy, micro_batch_tokens=1)
    packed = checked(ground.honest, ground.policy, micro_batch_tokens=4096)
    assert alone.verdict == packed.verdict == "PASS"


# --- what shows before anything is scored ---------------------------------------------------------


def test_another_tokenizer_is_named(ground: Ground, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(ground.policy, policy)
    told = json.loads((policy / "tokenizer.json").read_text("utf-8"))
    vocabulary = told["model"]["vocab"]
    one, other = sorted(vocabulary, key=vocabulary.__getitem__)[100:102]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    (policy / "tokenizer.json").write_text(json.dumps(told), "utf-8")
    report = checked(ground.honest, policy)
    assert codes(report) == ["tokenizer"]
    assert "64 of 64 rows" in evidence(report)
    assert ground.words.digest[:16] in evidence(report)
    assert report.figures is None


def test_a_policy_that_is_not_the_recorded_one_is_named(ground: Ground, tmp_path: Path) -> None:
    digest = weights_digest(ground.policy)
    rows = [spoiled.of_model(row, digest) for row in ground.rows]
    report = of(rows, tmp_path, ground.other)
    assert codes(report) == ["policy"]
    assert "the policy is not the version that sampled 64 of 64 rows" in evidence(report)
    assert digest[:16] in evidence(report)
    assert weights_digest(ground.other)[:16] in evidence(report)


def test_a_flipped_byte_is_named_with_its_row(ground: Ground, tmp_path: Path) -> None:
    store = spoiled.write(tmp_path / "store", ground.rows)
    spoiled.flip_a_byte(store)
    report = checked(store, ground.policy, least=2048)
    assert codes(report) == ["damaged"]
    assert "1 row of the store damaged" in evidence(report)
    assert "segment-00000001.arrow: trajectory 'task-" in evidence(report)
    assert report.figures is not None
    assert report.figures.tokens == SAMPLED - 40
    assert report.figures.most < 1e-4


def test_a_file_that_is_cut_off_is_named(ground: Ground, tmp_path: Path) -> None:
    store = spoiled.write(tmp_path / "store", ground.rows)
    (file,) = store.glob("*.arrow")
    file.write_bytes(file.read_bytes()[:-3000])
    assert "damaged" in codes(checked(store, ground.policy))


def test_a_store_of_another_major_is_named_with_both(ground: Ground, tmp_path: Path) -> None:
    store = spoiled.write_unchecked(tmp_path / "s", ground.rows, "envkit.trajectory/9.4")
    report = checked(store, ground.policy)
    assert codes(report) == ["schema"]
    assert "envkit.trajectory/9.4" in report.causes[0].says
    assert "this version reads" in report.causes[0].says
    same = spoiled.write_unchecked(tmp_path / "same", ground.rows)
    assert checked(same, ground.policy).verdict == "PASS"


@pytest.mark.parametrize("value", [float("-inf"), float("nan"), -9999.0])
def test_log_probs_that_are_none_are_a_cause_of_their_own(
    ground: Ground, tmp_path: Path, value: float
) -> None:
    spoilt = ground.rows[3]
    logprobs = spoilt.episode.stream.logprobs.copy()
    logprobs[np.flatnonzero(spoilt.episode.stream.loss_mask)[5]] = value
    rows = [*ground.rows[:3], spoiled.with_logprobs(spoilt, logprobs), *ground.rows[4:]]
    report = checked(spoiled.write_unchecked(tmp_path / "s", rows), ground.policy)
    assert codes(report) == ["not_finite"]
    assert "1 row with recorded log-probs that are none" in evidence(report)
    assert spoilt.identity.trajectory_id in evidence(report)
    assert report.figures is not None
    assert report.figures.most < 1e-4


def test_observations_that_are_not_what_was_shown_are_named(ground: Ground, tmp_path: Path) -> None:
    from envkit.trajectory.digest import ids_digest
    from envkit.trajectory.types import CallRecord

    def called(row: Trajectory, shift: int) -> Trajectory:
        segment = row.episode.stream.segments[2]
        shown = row.episode.stream.token_ids[segment.start : segment.stop]
        call = CallRecord(
            call_id="1",
            turn=0,
            name="look",
            ok=True,
            started_s=0.0,
            seconds=0.1,
            fingerprint="",
            observation_sha256=ids_digest(shown + np.int32(shift)),
        )
        return replace(row, episode=replace(row.episode, calls=(call,)))

    honest = [called(row, 0) for row in ground.rows]
    assert of(honest, tmp_path, ground.policy).verdict == "PASS"
    rows = [called(ground.rows[0], 1), *honest[1:]]
    report = checked(spoiled.write_unchecked(tmp_path / "spoilt", rows), ground.policy)
    assert codes(report) == ["retokenised"]
    assert "1 row with observations that are not the ids the model was shown" in evidence(report)


def test_ids_beyond_the_vocabulary_are_named(ground: Ground, tmp_path: Path) -> None:
    size = json.loads((ground.policy / "config.json").read_text("utf-8"))["vocab_size"]
    ids = ground.rows[0].episode.stream.token_ids.copy()
    ids[0] = size
    rows = [spoiled.with_ids(ground.rows[0], ids), *ground.rows[1:]]
    report = of(rows, tmp_path, ground.policy)
    assert codes(report) == ["vocabulary"]
    assert f"task-0__000: id {size}" in evidence(report)
    ids[0] = size - 1
    fits = [spoiled.with_ids(ground.rows[0], ids), *ground.rows[1:]]
    inside = of(fits, tmp_path / "inside", ground.policy)
    assert inside.verdict == "PASS"


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (Sampling(top_p=0.9), "top_p 0.9"),
        (Sampling(temperature=0.7), "log-probs are of temperature 1, and 0.7 was sampled at"),
        (Sampling(repetition_penalty=1.1), "repetition_penalty 1.1"),
    ],
)
def test_another_distribution_is_named(
    ground: Ground, tmp_path: Path, sampling: Sampling, said: str
) -> None:
    first = ground.rows[0]
    spoilt = replace(first, identity=replace(first.identity, sampling=sampling))
    report = of([spoilt, *ground.rows[1:]], tmp_path, ground.policy)
    assert codes(report) == ["distribution"]
    assert "1 of 64 rows" in evidence(report)
    assert f"task-0__000: {'' if 'log' in said else 'was sampled with '}{said}" in evidence(report)


# --- too little -----------------------------------------------------------------------------------


def test_with_fewer_than_2048_tokens_it_is_not_measured_and_fails(
    ground: Ground, tmp_path: Path
) -> None:
    few = of(ground.rows[:51], tmp_path / "few", ground.policy)
    assert (few.verdict, few.exit_code, codes(few)) == ("NOT MEASURED", 1, ["not_measured"])
    assert "2,040 comparable tokens of 2,040 sampled; 2,048 are needed" in evidence(few)
    assert few.figures is None
    assert of(ground.rows[:52], tmp_path / "enough", ground.policy).verdict == "PASS"


def test_only_tokens_of_the_version_count(ground: Ground, tmp_path: Path) -> None:
    rows = [spoiled.of_version(row, 4 if n < 60 else 5) for n, row in enumerate(ground.rows)]
    store = spoiled.write(tmp_path / "store", rows)
    report = checked(store, ground.policy)
    assert report.verdict == "PASS"
    assert report.scale is not None
    assert (report.scale.version, report.scale.comparable) == (4, {4: 2400, 5: 160})
    assert any("several versions" in note for note in report.notes)
    assert codes(checked(store, ground.policy, version=5)) == ["not_measured"]
    small = checked(store, ground.policy, version=5, least=100)
    assert small.figures is not None
    assert (small.verdict, small.figures.tokens) == ("PASS", 160)


def test_tokens_that_attended_to_older_weights_do_not_count(ground: Ground, tmp_path: Path) -> None:
    stale = [spoiled.of_version(row, 4, kv_version=3) for row in ground.rows]
    assert codes(of(stale, tmp_path / "stale", ground.policy)) == ["not_measured"]
    fresh = [spoiled.of_version(row, 4, kv_version=4) for row in ground.rows]
    assert of(fresh, tmp_path / "fresh", ground.policy).verdict == "PASS"


# --- what shows once it is scored -----------------------------------------------------------------


@pytest.mark.parametrize("by", [-2, -1, 1, 2])
def test_a_mask_that_is_shifted_is_named_with_its_shift(
    ground: Ground, tmp_path: Path, by: int
) -> None:
    report = of((spoiled.shifted(row, by) for row in ground.rows), tmp_path, ground.policy, least=9)
    assert codes(report) == ["shifted"]
    where = f"{'one token' if abs(by) == 1 else '2 tokens'} {'later' if by > 0 else 'earlier'}"
    assert f"stand {where} than the tokens they are of" in evidence(report)
    assert f"moved by {-by:+d}" in evidence(report)


def test_log_probs_that_are_shifted_inside_their_turns_are_named(
    ground: Ground, tmp_path: Path
) -> None:
    report = of((spoiled.rolled(row, 1) for row in ground.rows), tmp_path, ground.policy)
    assert codes(report) == ["shifted"]


def test_a_wrong_temperature_is_named_with_the_right_one(ground: Ground, tmp_path: Path) -> None:
    rows = [spoiled.recorded_at(row, 1.0) for row in ground.cool]
    report = of(rows, tmp_path, ground.policy)
    assert codes(report) == ["temperature"]
    assert "are of temperature 0.7, recorded as 1" in evidence(report)


def test_a_wrong_temperature_is_named_under_the_limit_too(ground: Ground, tmp_path: Path) -> None:
    rows = [spoiled.recorded_at(row, 0.9) for row in ground.rows]
    report = of(rows, tmp_path, ground.policy, limit=2.0)
    assert report.figures is not None
    assert report.figures.mean < 2.0
    assert codes(report) == ["temperature"]


def test_text_that_was_tokenised_again_is_named(ground: Ground, tmp_path: Path) -> None:
    rows = [spoiled.retokenised(row, ground.words) for row in ground.rows]
    report = of(rows, tmp_path, ground.policy, least=100)
    assert codes(report) == ["retokenised"]
    assert "agree up to a place in a turn" in evidence(report)
    assert "each of all 128 turns gives back its very ids" in evidence(report)


def test_one_turn_that_was_tokenised_again_is_named_under_the_limit(
    ground: Ground, tmp_path: Path
) -> None:
    again = [spoiled.retokenised(row, ground.words) for row in ground.rows]
    store = spoiled.write(tmp_path / "store", again)
    report = checked(store, ground.policy, least=100, limit=20.0)
    assert codes(report) == ["retokenised"]
    only_one = [*ground.rows[:-1], again[-1]]
    report = of(only_one, tmp_path / "one", ground.policy, limit=20.0)
    assert codes(report) == []  # the other turns are not what their texts are tokenised to


def test_another_policy_is_named_where_no_digest_is_recorded(
    ground: Ground, tmp_path: Path
) -> None:
    report = checked(ground.honest, ground.other)
    assert codes(report) == ["other_policy"]
    assert "100 % of 128 turns are over the limit" in evidence(report)
    assert "64 rows do not say which weights sampled them" in report.notes


def test_a_few_tokens_that_make_the_difference_are_arithmetic(
    ground: Ground, tmp_path: Path
) -> None:
    def odd(row: Trajectory) -> Trajectory:
        logprobs = row.episode.stream.logprobs.copy()
        logprobs[np.flatnonzero(row.episode.stream.loss_mask)[7]] -= 4.0
        return spoiled.with_logprobs(row, logprobs)

    report = of(map(odd, ground.rows), tmp_path, ground.policy)
    assert codes(report) == ["numerical"]
    assert "50 % of 128 turns are over the limit" in evidence(report)
    (first, *_) = report.worst
    assert first.trainer - first.rollout == pytest.approx(4.0, abs=1e-4)
    assert first.place == 24 + 7
    words, row = (
        ground.words,
        next(each for each in ground.rows if each.identity.trajectory_id == first.trajectory_id),
    )
    assert first.token == words.decode([int(row.episode.stream.token_ids[first.place])])


def test_the_noise_of_bfloat16_is_nobodys_mistake(ground: Ground) -> None:
    report = checked(ground.honest, ground.policy, dtype="bfloat16")
    assert report.figures is not None
    assert report.figures.mean > 1e-3
    assert (report.verdict, report.causes) == ("PASS", ())


# --- what cannot be run ---------------------------------------------------------------------------


def test_what_cannot_be_run_is_one_line(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for store, policy, more, said in (
        (tmp_path / "gone", ground.policy, {}, "gone: No such file or directory; name a store"),
        (tmp_path / "empty", ground.policy, {}, "empty: holds no trajectories; name a store"),
        (ground.honest, tmp_path / "gone", {}, "tokenizer.json: No such file or directory"),
        (ground.honest, ground.policy, {"tokens": 10}, "--tokens 10: is below --least 2048"),
    ):
        with pytest.raises(Refused, match=said) as refused:
            checked(store, policy, **more)
        assert "\n" not in str(refused.value)
