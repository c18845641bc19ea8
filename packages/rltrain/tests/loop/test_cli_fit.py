# SPDX-License-Identifier: Apache-2.0
"""``rltrain fit``: what is refused is one line and exit 2, and a dry run leaves nothing behind."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from envkit.trajectory.columns import CHECKSUM, encode
from envkit.trajectory.errors import StoreBusy
from envkit.trajectory.head import head_of
from envkit.trajectory.segment import Row, encode_segment
from envkit.trajectory.store import Store
from rltrain.cli import main
from rltrain.cli_edge import edge
from rltrain.cli_fit import Asked, one_rank, plain
from rltrain.config.read import made
from rltrain.loop.directory import manifest_of
from rltrain.loop.settings import Settings
from rltrain.loop.types import Ended
from rltrain.recipes import recipe_file
from rltrain.refused import Refused
from rltrain.track.line import step_line as told

sys.path.insert(0, str(Path(__file__).parents[1]))
import recorded

pytestmark = pytest.mark.trainer

NAN = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How a command ended."""

    status: int
    out: str
    err: str


type Typed = Callable[..., Said]


@pytest.fixture
def fit(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """``rltrain fit`` with these words, where policy, store and others are."""

    def typed(*words: str) -> Said:
        monkeypatch.setattr("sys.argv", ["rltrain", "fit", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Said(status=int(ended.value.code or 0), out=said.out, err=said.err)

    monkeypatch.chdir(place)
    return typed


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, and two prompts of three samples that it sampled."""
    place = tmp_path_factory.mktemp("sampled")
    recorded.policy(place / "policy")
    recorded.record(place / "store", place / "policy", recorded.Asked(groups=2, samples=3, said=4))
    return place


@pytest.fixture
def place(sampled: Path, tmp_path: Path) -> Path:
    """A copy of them, with all that a command may be given wrongly."""
    place = tmp_path / "place"
    shutil.copytree(sampled, place)
    for name in ("empty", "tiny-cpu", "begun"):
        (place / name).mkdir()
    (place / "file").touch()
    (place / "begun" / "run.json").write_text("{}", "utf-8")
    (place / "broken.toml").write_text("[run", "utf-8")
    (place / "misspelt.toml").write_text("[run]\nseeds = 1\n", "utf-8")
    foreign(place / "store", place / "foreign")
    return place


def foreign(store: Path, to: Path) -> None:
    """A store of another major version."""
    row = next(iter(Store(store)))
    batch = encode(row)
    made = Row(head=head_of(row), checksum=batch.column(CHECKSUM)[0].as_py(), batch=batch)
    to.mkdir()
    data = encode_segment([made], "envkit.trajectory/2.0")
    (to / "segment-00000001.arrow").write_bytes(data)


def files(place: Path) -> dict[str, int]:
    """All that is there, by when it was written."""
    return {str(each): each.stat().st_mtime_ns for each in sorted(place.rglob("*"))}


POLICY = ("--policy", "policy")
STORE = ("--trajectories", "store")
RUN = ("--out", "run")
WHOLE = (*POLICY, *STORE, *RUN)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "policy: must be given; it has no default"),
        (("tiny-cpu", *POLICY, *RUN), "nothing to train on: name a directory of tasks by --tasks"),
        (POLICY, "nothing to train on: name a directory of tasks by --tasks"),
        ((*STORE, *RUN), "policy: must be given; it has no default"),
        (("tiny-cpu", *STORE, *RUN), "policy.path: must be given; it has no default"),
        (
            ("tiny-cqu", *WHOLE),
            "recipe tiny-cqu: there is none of that name; did you mean tiny-cpu?",
        ),
        (
            ("zzz", *WHOLE),
            "recipe zzz: there is none of that name; there are tiny-cpu, overfit, qwen36-35b,"
            " qwen35-397b",
        ),
        (("none.toml", *WHOLE), "none.toml: No such file or directory"),
        (("broken.toml", *WHOLE), "broken.toml: is no TOML: "),
        (
            ("misspelt.toml", *WHOLE),
            "run.seeds: there is no such setting; did you mean seed?",
        ),
        (
            (*WHOLE, "--set", "run.epoch=2"),
            "run.epoch: there is no such setting; did you mean epochs?",
        ),
        (
            (*WHOLE, "--set", "objective.loss.name=dpo"),
            "objective.loss.name: there is no 'dpo'; did you mean",
        ),
        ((*WHOLE, "--set", "run.epochs"), "--set run.epochs: give NAME=VALUE, as"),
        ((*WHOLE, "--set", "run.epochs=0"), "run: epochs, steps: a run has at least 1 epoch"),
        (
            (*WHOLE, "--set", "objective.terms.kl=0.1"),
            "settings: objective.terms.kl is above 0 and policy.reference names no",
        ),
        (
            (*WHOLE, "--set", "batch.micro_batch_tokens=36"),
            "batch.micro_batch_tokens: task-0__000 has 37 tokens, a micro-batch 36 at most",
        ),
        (
            (*WHOLE, "--set", 'objective.loss={name="dppo_topk"}'),
            "objective.loss: dppo_topk needs alternatives, and task-0__000 has none;",
        ),
        (
            ("--policy", "empty", *STORE, *RUN),
            "policy.path: {place}/empty: no config.json can be read there; name a checkpoint",
        ),
        (
            (*POLICY, "--trajectories", "empty", *RUN),
            "empty: holds no trajectories; name a store",
        ),
        (
            (*POLICY, "--trajectories", "nowhere", *RUN),
            "nowhere: No such file or directory; name a store",
        ),
        (
            (*POLICY, "--trajectories", "file", *RUN),
            "file: Not a directory; name a store",
        ),
        (
            (*POLICY, "--trajectories", "foreign", *RUN),
            "foreign/segment-00000001.arrow: schema is 'envkit.trajectory/2.0',"
            " this version reads 'envkit.trajectory/1.0'",
        ),
        (
            (*POLICY, *STORE, "--out", "begun"),
            "begun: holds a run; go on with it by --resume, or name another --out",
        ),
        ((*POLICY, *STORE, "--out", "file"), "file: is a file; name a directory with --out"),
        (("--resume", "nowhere"), "nowhere: no run there (run.json: No such file or directory)"),
        (("--resume", "begun"), "begun/run.json: is no manifest of a run: started: Field required"),
        (
            ("--resume", "begun", "--set", "run.epochs=2"),
            "--resume goes on with the run's own settings; leave the others out",
        ),
        (("--resume", "begun", *POLICY), "--resume goes on with the run's own settings; leave"),
        (("--resume", "begun", *RUN), "--resume goes on with the run's own settings; leave"),
        (("tiny-cpu", "--resume", "begun"), "--resume goes on with the run's own settings; leave"),
        ((*WHOLE, "--ranks", "0"), "Invalid value for '--ranks': "),
        ((*WHOLE, "--ranks", "2", "--set", "run.epoch=2"), "run.epoch: there is no such setting"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--dry-run", "--json")], ids=["", "dry"])
def test_what_is_refused_is_one_line_and_changes_nothing(
    fit: Typed, place: Path, words: tuple[str, ...], line: str, more: tuple[str, ...]
) -> None:
    before = files(place)
    said = fit(*words, *more)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"rltrain: {line.format(place=place)}")
    assert said.err.count("\n") == 1
    assert files(place) == before


def test_a_directory_that_is_called_as_a_recipe_is_none(fit: Typed, place: Path) -> None:
    assert (place / "tiny-cpu").is_dir()
    said = fit("tiny-cpu", *WHOLE, "--dry-run")
    assert said.status == 0, said.err
    assert "learning_rate = 7e-05" in said.err


def test_a_recipe_may_be_a_file_of_any_name(fit: Typed, place: Path) -> None:
    shutil.copy(recipe_file("tiny-cpu"), place / "mine")
    assert "learning_rate = 7e-05" in fit("mine", *WHOLE, "--dry-run").err


@pytest.mark.parametrize(
    ("store", "line"),
    [
        ("nowhere", "nowhere: No such file or directory; name a store"),
        ("foreign", "foreign/segment-00000001.arrow: schema is 'envkit.trajectory/2.0', this"),
        ("empty", "empty: holds no trajectories; name a store"),
    ],
)
def test_what_one_of_several_ranks_is_refused_is_the_same_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, store: str, line: str
) -> None:
    monkeypatch.chdir(place)
    asked = Asked(
        recipe=None,
        trajectories=Path(store),
        out=Path("run"),
        resume=None,
        settings=["policy.path=policy"],
        dry_run=False,
        stop_after=0,
        as_json=False,
    )
    before = files(place)
    with pytest.raises(Refused) as refused:
        one_rank(asked)
    assert str(refused.value).startswith(line)
    assert files(place) == before


# --- a dry run ------------------------------------------------------------------------------------


def test_a_dry_run_shows_settings_and_data_and_leaves_nothing(fit: Typed, place: Path) -> None:
    before = files(place)
    said = fit(*WHOLE, "--dry-run", "--set", "run.seed=9", "--set", "batch.prompts=3")
    assert (said.status, said.out) == (0, "")
    assert files(place) == before
    *toml, last = said.err.splitlines()
    assert last == "6 trajectories, 2 groups to learn from"
    settings = made(Settings, tomllib.loads("\n".join(toml)))
    assert (settings.run.seed, settings.batch.prompts) == (9, 3)
    assert settings.policy.path == str(place / "policy")


def test_a_dry_run_has_its_manifest_as_a_json_document(fit: Typed, place: Path) -> None:
    before = files(place)
    said = fit(*WHOLE, "--dry-run", "--json")
    document = json.loads(said.out)
    assert (document["rows"], document["groups"], document["dropped"]) == (6, 2, {})
    assert document["trajectories"] == str(place / "store")
    assert files(place) == before


def test_only_a_dry_run_needs_no_directory(fit: Typed, place: Path) -> None:
    words = (*POLICY, *STORE)
    before = files(place)
    said = fit(*words)
    assert (said.status, said.err) == (2, "rltrain: name the directory of the run with --out RUN\n")
    assert fit(*words, "--dry-run").status == 0
    assert files(place) == before


def test_a_dry_run_takes_no_ranks(fit: Typed, place: Path) -> None:
    assert fit(*WHOLE, "--dry-run", "--ranks", "64").status == 0
    assert not (place / "run").exists()


def test_what_is_left_out_is_told_with_the_reasons(fit: Typed, place: Path) -> None:
    from dataclasses import replace

    def flat(row: Any) -> Any:
        name = row.identity.trajectory_id.replace("task", "flat")
        identity = replace(row.identity, trajectory_id=name, group_id=f"flat-{name[5]}")
        evaluation = row.identity.sample == 2
        return replace(row, identity=identity, episode=replace(row.episode, evaluation=evaluation))

    asked = recorded.Asked(groups=2, samples=3, said=4)
    recorded.record(place / "store", place / "policy", asked, lambda _: 0.5, flat)
    said = fit(*WHOLE, "--dry-run")
    last = said.err.splitlines()[-1]
    left = "(2 dropped: no_variance; 2 of evaluations)"
    assert last == f"10 trajectories, 2 groups to learn from {left}"


# --- a run ----------------------------------------------------------------------------------------


def test_a_run_is_left_after_the_step_that_was_named_and_goes_on(fit: Typed, place: Path) -> None:
    small = ("--set", "policy.dtype=float32", "--set", "batch.micro_batch_tokens=200")
    said = fit(*WHOLE, *small, "--set", "run.epochs=3", "--stop-after-step", "2", "--json")
    assert said.status == 0, said.err
    document = json.loads(said.out)
    assert (document["step"], document["steps"], document["interrupted"]) == (2, 3, True)
    assert (place / document["checkpoint"]).is_dir()
    before = files(place)
    again = fit("--resume", "run", "--stop-after-step", "2")
    line = "rltrain: --stop-after-step 2: the run stands after step 2 already; name a later one"
    assert (again.status, again.err.splitlines()[-1].startswith(line)) == (2, True)
    assert files(place).keys() == before.keys()
    ended = json.loads(fit("--resume", "run", "--json").out)
    assert (ended["step"], ended["resumed_at"], ended["interrupted"]) == (3, 2, False)


def test_a_run_ends_in_a_json_document_and_one_that_has_ended_says_what_can_be_done(
    fit: Typed, place: Path
) -> None:
    small = ("--set", "policy.dtype=float32", "--set", "batch.micro_batch_tokens=200")
    said = fit(*WHOLE, *small, "--json")
    assert said.status == 0, said.err
    document = json.loads(said.out)
    assert (document["run"], document["step"], document["steps"]) == ("run", 1, 1)
    assert (document["resumed_at"], document["interrupted"]) == (0, False)
    assert (place / document["checkpoint"]).is_dir()
    assert document["last"]["reward/count"] == 6
    assert "6 trajectories, 2 groups to learn from" in said.err
    (step,) = (line for line in said.err.splitlines() if line.startswith("step 1/1  reward "))
    assert "(faults 0%, " in step
    assert manifest_of(place / "run").rows == 6
    again = fit("--resume", "run")
    assert again.status == 0, again.err
    first, second = again.out.splitlines()
    assert first == f"run: 1 of 1 steps; checkpoint {document['checkpoint']}"
    assert second == "rltrain report run   rltrain export run DIR"


NUMBERS = {
    "reward/mean": 0.25,
    "reward/fault_share": 0.125,
    "reward/low": 0.21875,
    "reward/high": 0.34375,
    "tokens/trained": 12345.0,
    "seconds/total": 1.25,
}


def test_a_step_is_one_line_with_the_fault_share_and_bounds_beside_the_mean() -> None:
    more = {"loss/tv": 0.0625, "loss/entropy": 1.5, "optimizer/gradient_norm": 0.5}
    masked = {"loss/masked_positive": 0.25, "loss/masked_negative": 0.0}
    line = told({**NUMBERS, **more, **masked, "logprob/difference": 0.015625})
    assert line == (
        "reward 0.250 (faults 12%, 0.219 to 0.344)  mismatch 0.016  TV 0.062  entropy 1.50"
        "  masked + 25.0% - 0.0%  |g| 0.5  12,345 tokens  1.2 s"
    )


@pytest.mark.parametrize("more", [{}, {"logprob/difference": NAN}])
def test_a_step_of_which_nothing_was_trained_is_a_line_too(more: dict[str, float]) -> None:
    line = told(NUMBERS | more)
    assert line.startswith("reward 0.250 (faults 12%, 0.219 to 0.344)  TV nan")
    assert "mismatch" not in line


def test_what_is_no_number_is_null() -> None:
    ended = Ended(
        step=3,
        steps=9,
        resumed_at=1,
        interrupted=True,
        checkpoint=None,
        last={"reward/mean": NAN, "loss/ratio_max": float("inf"), "loss/tv": 0.5},
    )
    assert json.loads(json.dumps(plain(ended), allow_nan=False)) == {
        "step": 3,
        "steps": 9,
        "resumed_at": 1,
        "interrupted": True,
        "checkpoint": None,
        "last": {"reward/mean": None, "loss/ratio_max": None, "loss/tv": 0.5},
    }


# --- where errors become lines --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Refused("a:\n  b"), "a: b"),
        (StoreBusy("store", "process 7"), "store: another process writes here (process 7); wait"),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch"),
            "torch is not installed; pip install 'rltrain[torch]'",
        ),
        (
            PermissionError(13, "Permission denied", "/place"),
            "/place: Permission denied; name a place that can be read and written",
        ),
    ],
)
def test_what_a_user_can_set_right_is_a_line(
    error: Exception, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, edge():
        raise error
    assert ended.value.exit_code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"rltrain: {line}")
    assert said.err.count("\n") == 1


def test_an_interruption_has_a_status_of_its_own() -> None:
    with pytest.raises(typer.Exit) as ended, edge():
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("ours")])
def test_what_nobody_can_set_right_is_not_hidden(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error.args[-1])), edge():
        raise error
