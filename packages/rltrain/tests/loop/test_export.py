# SPDX-License-Identifier: Apache-2.0
"""What was trained is handed on as a checkpoint that others load."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from rltrain.loop.evaluation import Evaluated, keep
from rltrain.loop.export import best_of, export
from rltrain.loop.lineage import Lineages
from rltrain.policy.config import OptimizerConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import joined
from rltrain.refused import Refused
from rltrain.sync.version import WeightVersion

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import recorded
import runs

pytestmark = pytest.mark.trainer


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, trajectories of it, and a run of three steps."""
    place = tmp_path_factory.mktemp("export")
    policy = recorded.policy(place / "policy")
    recorded.record(place / "store", policy, recorded.Asked(groups=6, samples=4))
    given = ("batch.prompts=2", "checkpoint.every=1", "checkpoint.keep=2")
    runs.begun(policy, place / "store", place / "run", *given)
    return place


def loaded(directory: Path, **more: Any) -> dict[str, torch.Tensor]:
    from transformers import AutoModelForCausalLM

    return dict(AutoModelForCausalLM.from_pretrained(directory, **more).named_parameters())


def restored(place: Path, run: str = "run") -> dict[str, torch.Tensor]:
    """Weights of the newest checkpoint, out of the backend."""
    from rltrain.config.read import read
    from rltrain.loop.settings import Settings

    settings = read(Settings, place / run / "config.toml")
    newest = sorted((place / run / "checkpoints").glob("step-*"))[-1]
    with joined():
        backend = FsdpBackend(settings.policy, OptimizerConfig())
        backend.restore(newest / "state")
        return {name: each.clone() for name, each in backend.weights()}


def test_it_has_the_weights_of_the_checkpoint_and_all_else_of_the_policy(
    place: Path, tmp_path: Path
) -> None:
    made = export(place / "run", tmp_path / "out")
    assert (made.step, made.dtype) == (3, "float32")
    weights, right = loaded(tmp_path / "out"), restored(place)
    assert weights.keys() == right.keys()
    assert all(torch.equal(each, right[name]) for name, each in weights.items())
    began = loaded(place / "policy")
    assert not any(torch.equal(each, began[name]) for name, each in weights.items())
    for file in (place / "policy").iterdir():
        if not file.name.endswith(".safetensors") and file.name != "config.json":
            assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()
    config = json.loads((tmp_path / "out/config.json").read_text("utf-8"))
    assert config["architectures"] == ["Qwen3ForCausalLM"]


def test_a_checkpoint_is_chosen_by_its_step(place: Path, tmp_path: Path) -> None:
    export(place / "run", tmp_path / "two", step=2)
    newest, older = restored(place), loaded(tmp_path / "two")
    assert not torch.equal(newest["lm_head.weight"], older["lm_head.weight"])
    with pytest.raises(Refused, match=r"no whole checkpoint of step 1; steps kept: 2, 3$"):
        export(place / "run", tmp_path / "one", step=1)


def test_a_policy_in_bfloat16_is_handed_on_in_bfloat16(place: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    policy = Path(shutil.copytree(place / "policy", tmp_path / "policy"))
    narrow = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.bfloat16)
    narrow.save_pretrained(policy)
    runs.begun(policy, place / "store", tmp_path / "run", "run.steps=1")
    assert export(tmp_path / "run", tmp_path / "out").dtype == "bfloat16"
    right = restored(tmp_path)
    for name, each in loaded(tmp_path / "out", dtype="auto").items():
        assert torch.equal(each, right[name].bfloat16())


def test_what_lora_has_learned_is_in_the_weights(place: Path, tmp_path: Path) -> None:
    given = ("policy.lora.rank=4", "run.steps=2")
    runs.begun(place / "policy", place / "store", tmp_path / "run", *given)
    export(tmp_path / "run", tmp_path / "out")
    began, weights = loaded(place / "policy"), loaded(tmp_path / "out")
    moved = {name for name, each in weights.items() if not torch.equal(each, began[name])}
    assert moved == {name for name in began if name.endswith("_proj.weight")}


def test_nothing_is_written_over_and_no_run_is_no_run(place: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(Refused, match="is there already"):
        export(place / "run", tmp_path / "out")
    with pytest.raises(Refused, match="no run there"):
        export(tmp_path / "out", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_policy_that_was_changed_for_another_is_refused(place: Path, tmp_path: Path) -> None:
    for name in ("policy", "store"):
        shutil.copytree(place / name, tmp_path / name)
    runs.begun(tmp_path / "policy", tmp_path / "store", tmp_path / "run", "run.steps=1")
    shutil.rmtree(tmp_path / "policy")
    recorded.policy(tmp_path / "policy", num_hidden_layers=1)
    with pytest.raises(Refused, match=r"policy\.path: .* has other weights than when the run"):
        export(tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_passed_over_is_not_said_where_programs_read(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    (run / "checkpoints/step-00000003/commit.json").unlink()
    assert export(run, tmp_path / "out").step == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "step-00000003: commit.json cannot be read" in said.err


def test_the_best_is_that_which_earned_most_of_what_the_run_descends_from(place: Path) -> None:
    root = place / "run"
    with pytest.raises(Refused, match="no evaluation after a step; leave --best out"):
        best_of(root)
    first = Lineages(lines=()).begun(root, None, "then")
    first.begun(root, WeightVersion(lineage=0, step=2), "later")
    earned = {(0, 0): 1.0, (0, 1): 0.5, (0, 2): 0.75, (0, 3): 0.875, (1, 3): 0.625}
    for (lineage, step), reward in earned.items():
        rewards: dict[str, list[float | None]] = {"task": [reward, None]}
        keep(
            root,
            Evaluated(lineage=lineage, step=step, seconds=1.0, rewards=rewards, sampled_tokens=9),
        )
    assert best_of(root) == 2  # 3 was better in a lineage that died, and at 0 no step was taken
