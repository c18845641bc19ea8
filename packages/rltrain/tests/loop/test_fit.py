# SPDX-License-Identifier: Apache-2.0
"""Training on recorded trajectories does to the policy what the rewards say."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from envkit.trajectory.store import Store
from envkit.trajectory.types import Stop, Trajectory
from rltrain.loop.export import export
from rltrain.refused import Refused
from rltrain.track.metrics import read_metrics

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import recorded
import runs

pytestmark = pytest.mark.trainer


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded.policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def store(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """64 trajectories of eight prompts."""
    place = tmp_path_factory.mktemp("recorded") / "store"
    recorded.record(place, policy)
    return place


def logprobs(policy: Path, store: Path) -> dict[str, float]:
    """The mean log-prob of what the model said, by trajectory, one after the other."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    found: dict[str, float] = {}
    for row in Store(store):
        ids = torch.tensor(row.episode.stream.token_ids, dtype=torch.int64)
        with torch.no_grad():
            chances = model(ids[None]).logits[0].log_softmax(-1)
        said = torch.tensor(row.episode.stream.loss_mask).nonzero().flatten()
        found[row.identity.trajectory_id] = float(chances[said - 1, ids[said]].mean())
    return found


def moved(policy: Path, store: Path, root: Path) -> tuple[float, float]:
    """By how much samples above, and below, their group's mean became likelier, in nats a token."""
    trained = export(root, root.with_suffix(".policy")).directory
    before, after = logprobs(policy, store), logprobs(trained, store)
    rewards = {each.trajectory_id: each for each in Store(store).heads}
    means: dict[str, list[float]] = {}
    for head in rewards.values():
        means.setdefault(head.group_id, []).append(head.reward or 0.0)
    good: list[float] = []
    bad: list[float] = []
    for name, head in rewards.items():
        group = means[head.group_id]
        better = (head.reward or 0.0) > sum(group) / len(group)
        (good if better else bad).append(after[name] - before[name])
    return sum(good) / len(good), sum(bad) / len(bad)


@pytest.mark.parametrize("loss", ["dppo", "glm5", "ppo", "tis", "reinforce"])
def test_good_samples_become_likelier_and_bad_ones_less_likely(
    policy: Path, store: Path, tmp_path: Path, loss: str
) -> None:
    ended = runs.begun(policy, store, tmp_path / "run", f"objective.loss.name={loss}")
    assert (ended.step, ended.steps, ended.interrupted) == (2, 2, False)
    good, bad = moved(policy, store, tmp_path / "run")
    assert good > 0.001
    assert bad < -0.001


def test_what_is_asked_is_on_disk_before_the_first_step_and_numbers_after_each(
    policy: Path, store: Path, tmp_path: Path
) -> None:
    root = tmp_path / "run"
    heard = runs.Heard()
    runs.begun(policy, store, root, "run.epochs=2", heard=heard)
    steps = read_metrics(root / "metrics.jsonl").steps
    assert [each.step for each in steps] == [1, 2, 3, 4]
    assert len(heard.steps) == 4
    first, last = steps[0].numbers, steps[-1].numbers
    assert first["reward/count"] == 32
    assert first["tokens/trained"] == 32 * 40
    assert first["logprob/difference"] is not None
    assert first["logprob/difference"] < 1e-5  # the policy is the one that sampled
    assert last["logprob/difference"] is None  # and is not any more
    assert first["staleness/mean"] == 0
    assert last["staleness/max"] == 3
    assert first["loss/tv"] < 1e-5 < last["loss/tv"]
    assert math.isclose(
        sum(v for n, v in first.items() if n.startswith("seconds/") and n != "seconds/total"),
        first["seconds/total"],
        rel_tol=1e-6,
    )
    manifest = json.loads((root / "run.json").read_text("utf-8"))
    assert manifest["rows"] == 64
    assert manifest["groups"] == 8
    assert 'name = "dppo"' in (root / "config.toml").read_text("utf-8")
    assert list((root / "tensorboard").iterdir())


def test_log_probs_are_compared_once_where_no_row_says_which_weights_sampled(
    policy: Path, tmp_path: Path
) -> None:
    """Then the policy is taken for the one that sampled, until its first step."""

    def unsaid(row: Trajectory) -> Trajectory:
        stream = row.episode.stream
        unknown = replace(stream, weight_version=stream.weight_version * 0 - 1)
        return replace(row, episode=replace(row.episode, stream=unknown))

    recorded.record(tmp_path / "store", policy, recorded.Asked(groups=4, samples=4), change=unsaid)
    runs.begun(policy, tmp_path / "store", tmp_path / "run", "batch.prompts=2")
    first, second = (each.numbers for each in read_metrics(tmp_path / "run/metrics.jsonl").steps)
    assert first["logprob/difference"] is not None
    assert first["logprob/difference"] < 1e-5
    assert first["staleness/unknown"] == second["staleness/unknown"] == 1.0
    assert second["logprob/difference"] is None


def test_kl_keeps_the_policy_near_its_reference(policy: Path, store: Path, tmp_path: Path) -> None:
    """By how much the log-probs of what was said move, with the term and without."""
    began, off = logprobs(policy, store), dict[float, float]()
    for kl in (0.0, 1.0):
        root = tmp_path / str(kl)
        given = (f"objective.terms.kl={kl}", f"policy.reference={policy}", "run.epochs=4")
        runs.begun(policy, store, root, *given)
        ended = logprobs(export(root, root.with_suffix(".policy")).directory, store)
        off[kl] = sum(abs(ended[name] - value) for name, value in began.items())
    assert off[1.0] < 0.7 * off[0.0]


def test_a_run_that_is_told_to_stop_keeps_its_step_and_goes_on_to_the_same_end(
    policy: Path, store: Path, tmp_path: Path
) -> None:
    class Stopping(runs.Heard):
        def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
            super().step(step, steps, numbers)
            if step == 3:
                os.kill(os.getpid(), signal.SIGTERM)

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    heard = Stopping()
    given = ("run.epochs=3", "checkpoint.every=2")
    stopped = runs.begun(policy, store, tmp_path / "run", *given, heard=heard)
    assert (stopped.step, stopped.interrupted) == (3, True)
    assert stopped.checkpoint == tmp_path / "run/checkpoints/step-00000003"
    assert any("stopping after this step" in each for each in heard.lines)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    ended = runs.resumed(tmp_path / "run")
    assert (ended.step, ended.resumed_at, ended.interrupted) == (6, 3, False)
    runs.begun(policy, store, tmp_path / "whole", *given)
    assert shards(tmp_path / "run") == shards(tmp_path / "whole")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "whole")


def test_a_second_wish_to_stop_ends_at_once(policy: Path, store: Path, tmp_path: Path) -> None:
    class Impatient(runs.Heard):
        def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        runs.begun(policy, store, tmp_path / "run", heard=Impatient())
    assert runs.resumed(tmp_path / "run").step == 2


def test_a_run_that_has_ended_has_nothing_left_to_do(
    policy: Path, store: Path, tmp_path: Path
) -> None:
    runs.begun(policy, store, tmp_path / "run")
    before = shards(tmp_path / "run"), numbers(tmp_path / "run")
    again = runs.resumed(tmp_path / "run")
    assert (again.step, again.resumed_at, again.last) == (2, 2, {})
    assert (shards(tmp_path / "run"), numbers(tmp_path / "run")) == before


def test_a_batch_of_which_nothing_is_trained_is_a_step_all_the_same(
    policy: Path, store: Path, tmp_path: Path
) -> None:
    """All samples are cut off, and those are filtered."""

    def cut_off(row: Trajectory) -> Trajectory:
        return replace(row, episode=replace(row.episode, stop=Stop.LENGTH))

    recorded.record(tmp_path / "cut", policy, recorded.Asked(groups=4, samples=3), change=cut_off)
    root = tmp_path / "run"
    ended = runs.begun(policy, tmp_path / "cut", root, "objective.overlong_filter=true")
    assert ended.step == 1
    assert ended.last["samples/trained"] == 0
    assert "loss/value" not in ended.last


def test_a_run_does_not_go_on_from_another_policy(
    policy: Path, store: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(policy, tmp_path / "policy"))
    runs.begun(own, store, tmp_path / "run", "policy.lora.rank=2", "run.steps=1")
    recorded.policy(own, seed=1)
    with pytest.raises(Refused, match=r"policy\.path: .* has other weights than when the run"):
        runs.resumed(tmp_path / "run")


def shards(root: Path) -> list[bytes]:
    last = sorted((root / "checkpoints").glob("step-*"))[-1]
    return [last.name.encode(), *(each.read_bytes() for each in sorted(last.rglob("*.distcp")))]


def numbers(root: Path) -> list[dict[str, Any]]:
    timed = ("seconds/", "time")
    return [
        {name: value for name, value in each.numbers.items() if not name.startswith(timed)}
        for each in read_metrics(root / "metrics.jsonl").steps
    ]
