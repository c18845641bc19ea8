# SPDX-License-Identifier: Apache-2.0
"""A dry run of a live run: whether it fits, and makes the ids that it trains on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rltrain.cli import main
from rltrain.loop.rendering import expect_same, of_environment, of_trainer
from rltrain.refused import Refused
from rltrain.tiny.make import TinyOptions, make

from ..tiny.recordings import write_recordings

pytestmark = pytest.mark.trainer

TASKS = Path(__file__).parents[4] / "tasks/tiny"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dry")
    write_recordings(place / "recorded")
    make(TinyOptions(out=place / "policy", transcripts=place / "recorded", steps=1))
    return place / "policy"


@pytest.fixture
def dry(
    policy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str, str]]:
    def typed(*words: str) -> tuple[int, str, str]:
        given = ("--policy", str(policy), "--tasks", str(TASKS), "--environment-python")
        line = ("rltrain", "fit", "tiny-cpu", *given, sys.executable, "--dry-run", *words)
        monkeypatch.setattr("sys.argv", list(line))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert list(tmp_path.iterdir()) == []
        return int(ended.value.code or 0), said.out, said.err

    monkeypatch.chdir(tmp_path)
    return typed


def test_what_fits_is_said_with_what_is_wanted_and_what_is_there(
    dry: Callable[..., tuple[int, str, str]],
) -> None:
    status, out, _ = dry("--json")
    document = json.loads(out)
    assert status == 0
    assert [each["what"] for each in document["rooms"]] == [
        "memory of this machine",
        "disk, checkpoints",
        "disk, a day of trajectories",
    ]
    assert all(each["fits"] and 0 < each["wants"] < each["has"] for each in document["rooms"])


def test_a_run_that_wants_more_memory_than_there_is_does_not_fit(
    dry: Callable[..., tuple[int, str, str]],
) -> None:
    status, _, err = dry("--set", "rollout.kv_cache_gib=100000")
    assert status == 1
    assert "DOES NOT FIT  memory of this machine: 100,00" in err


def test_memory_of_a_cluster_that_is_there_is_not_known_from_here(
    dry: Callable[..., tuple[int, str, str]],
) -> None:
    cluster = ("--set", "cluster.address=10.0.0.1:6379", "--set", "cluster.gpus_per_node=0")
    status, _, err = dry(*cluster, "--set", "rollout.kv_cache_gib=100000")
    assert status == 0
    assert "memory of this machine: 100,00" in err
    assert "GiB wanted, not known here" in err


def test_where_only_lora_is_trained_no_moments_of_all_weights_are_wanted(
    dry: Callable[..., tuple[int, str, str]],
) -> None:
    disk = [
        json.loads(dry("--json", *more)[1])["rooms"][1]["wants"]
        for more in ((), ("--set", "policy.lora.rank=8"))
    ]
    assert disk[0] == pytest.approx(3 * disk[1])


@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python"])
def test_an_environment_without_envkit_is_refused(policy: Path, python: str) -> None:
    with pytest.raises(Refused, match=f"rollout.environment_python: {python}: .*envkit"):
        of_environment(Path(python), policy)


def test_trials_that_make_other_ids_than_the_trainer_are_refused(policy: Path) -> None:
    ours = of_trainer(policy)
    expect_same(ours, of_environment(Path(sys.executable), policy))
    for name in ("tokenizer", "template"):
        with pytest.raises(Refused, match=f"its {name} of the policy is 0000, the trainer's is"):
            expect_same(ours, replace(ours, **{name: "0000"}))
