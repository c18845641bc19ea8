# SPDX-License-Identifier: Apache-2.0
"""Whatever cannot be trained on as it is asked is refused before anything on disk has changed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.trajectory.compact import compact
from envkit.trajectory.errors import OtherSchema
from envkit.trajectory.segment import read_segment
from envkit.trajectory.store import Store, segment_files
from envkit.trajectory.types import Sampling, Trajectory
from envkit.trajectory.writer import Writer
from rltrain.config.read import read
from rltrain.config.show import shown
from rltrain.loop.directory import begin, locked
from rltrain.loop.prepare import DENSE, Again, New, Prepared, prepared
from rltrain.loop.run import run
from rltrain.loop.settings import Settings
from rltrain.refused import Refused

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import recorded
import runs

pytestmark = pytest.mark.trainer

LONGEST = 24 + 4 + 5 + 4


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, and three prompts of three samples that it sampled."""
    place = tmp_path_factory.mktemp("prepared")
    recorded.policy(place / "policy")
    recorded.record(place / "store", place / "policy", recorded.Asked(groups=3, samples=3, said=4))
    return place


def disk(*roots: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below, by its bytes and when it was written."""
    files = (each for root in roots for each in [root, *root.rglob("*")] if each.exists())
    return {
        str(each): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else b"")
        for each in files
    }


def rewritten(place: Path, to: Path, change: Callable[[Trajectory], Trajectory]) -> Path:
    """The same rows, each changed."""
    with Writer.open(to) as writer:
        for row in Store(place / "store"):
            writer.append(change(row))
    return to


def rewarded(reward: Callable[[int, int], float]) -> Callable[[Trajectory], Trajectory]:
    """By the numbers of group and sample."""

    def change(row: Trajectory) -> Trajectory:
        group = int(row.identity.group_id.removeprefix("task-"))
        value = reward(group, row.identity.sample)
        return replace(row, outcome=replace(row.outcome, reward=value))

    return change


def asked(place: Path, root: Path, *given: str, store: Path | None = None) -> New:
    settings = runs.settings(place / "policy", *given)
    return New(settings=settings, trajectories=store or place / "store", root=root)


def ready(asked: New | Again) -> Prepared:
    return prepared(asked, lambda *_: None)


def refused(asked: New | Again) -> str:
    with pytest.raises(Refused) as error:
        ready(asked)
    assert "\n" not in str(error.value)
    return str(error.value)


def begun(place: Path, root: Path, *given: str, store: Path | None = None) -> Path:
    """A run of which no step was taken."""
    found = ready(asked(place, root, *given, store=store))
    begin(root, shown(found.work.settings), found.manifest)
    return root


# --- what nothing stands in the way of ------------------------------------------------------------


def test_what_is_prepared_says_what_is_trained_and_changes_nothing(
    place: Path, tmp_path: Path
) -> None:
    flat = rewarded(lambda group, sample: 0.5 if group == 1 else sample / 4)
    store = rewritten(place, tmp_path / "store", flat)
    before = disk(place, tmp_path)
    found = ready(asked(place, tmp_path / "run", "run.seed=9", store=store))
    assert disk(place, tmp_path) == before
    assert found.new
    assert [each.name for each in found.work.groups] == ["task-0", "task-2"]
    manifest = found.manifest
    assert (manifest.rows, manifest.groups, manifest.dropped) == (9, 2, {"task-1": "no_variance"})
    assert (manifest.damaged, manifest.evaluations, manifest.seed) == (0, 0, 9)
    assert manifest.data == found.work.recorded.digest
    assert (manifest.policy, manifest.trajectories) == (str(place / "policy"), str(store))
    assert found.work.remarks == ()
    assert found.work.cost != DENSE


def test_it_is_heard_how_many_rows_are_read(place: Path, tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    prepared(asked(place, tmp_path / "run"), lambda *each: heard.append(each))
    assert heard == [(number, 9) for number in range(1, 10)]


def test_what_is_damaged_and_what_is_of_an_evaluation_is_remarked_and_counted(
    place: Path, tmp_path: Path
) -> None:
    def change(row: Trajectory) -> Trajectory:
        shown = row.identity.trajectory_id == "task-2__002"
        return replace(row, episode=replace(row.episode, evaluation=shown))

    store = rewritten(place, tmp_path / "store", change)
    spoil(store, "task-0__001")
    found = ready(asked(place, tmp_path / "run", store=store))
    manifest = found.manifest
    assert (manifest.rows, manifest.damaged, manifest.evaluations) == (7, 1, 1)
    (remark,) = found.work.remarks
    assert "trajectory 'task-0__001': " in remark


def test_a_model_whose_cost_is_not_known_is_packed_as_another_and_remarked(
    place: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(place / "policy", policy)
    config = json.loads((policy / "config.json").read_text("utf-8"))
    (policy / "config.json").write_text(json.dumps({**config, "mamba_d_state": 16}), "utf-8")
    found = ready(asked(place, tmp_path / "run", f"policy.path={policy}"))
    assert found.work.cost == DENSE
    (remark,) = found.work.remarks
    assert remark.startswith("packed as for a dense model of 2,048 wide; ")
    assert "mamba_d_state" in remark


def test_a_cap_of_exactly_the_longest_is_enough(place: Path, tmp_path: Path) -> None:
    assert ready(asked(place, tmp_path / "run", f"batch.micro_batch_tokens={LONGEST}")).new


def test_rows_that_no_step_is_taken_on_need_not_fit(place: Path, tmp_path: Path) -> None:
    def stale(row: Trajectory) -> Trajectory:
        return replace(named(row, "old"), outcome=replace(row.outcome, loss_live=False))

    store = tmp_path / "store"
    shutil.copytree(place / "store", store)
    longer = recorded.Asked(groups=1, samples=2, said=9)
    recorded.record(store, place / "policy", longer, change=stale)
    cap = f"batch.micro_batch_tokens={LONGEST}"
    found = ready(asked(place, tmp_path / "run", cap, store=store))
    assert [len(each.rows) for each in found.work.groups] == [5, 3, 3]


def named(row: Trajectory, suffix: str) -> Trajectory:
    name = f"{row.identity.trajectory_id}-{suffix}"
    return replace(row, identity=replace(row.identity, trajectory_id=name))


def test_paths_are_kept_whole_so_a_run_goes_on_from_anywhere(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    settings = runs.settings(Path("policy"), "policy.reference=policy", "objective.terms.kl=0.1")
    new = New(settings=settings, trajectories=Path("store"), root=tmp_path / "run")
    found = ready(new)
    begin(new.root, shown(found.work.settings), found.manifest)
    monkeypatch.chdir(tmp_path)
    again = ready(Again(root=Path("run")))
    assert not again.new
    assert again.manifest == found.manifest
    assert again.work.settings.policy.path == str(place / "policy")
    assert again.work.settings.policy.reference == str(place / "policy")


def test_a_run_goes_on_with_its_own_settings_and_groups(place: Path, tmp_path: Path) -> None:
    given = ("run.seed=5", "batch.prompts=2", 'objective.loss={name="glm5"}')
    found = ready(asked(place, tmp_path / "run", *given))
    again = ready(Again(root=begun(place, tmp_path / "run", *given)))
    assert again.work.settings == found.work.settings
    assert again.work.groups == found.work.groups
    assert again.manifest.data == found.manifest.data


def test_trajectories_may_have_been_moved_and_merged(place: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for row in Store(place / "store"):
        with Writer.open(store) as writer:
            writer.append(row)
    root = begun(place, tmp_path / "run", store=store)
    compact(store)
    assert len(segment_files(store)) == 1
    assert not ready(Again(root=root)).new
    store.rename(tmp_path / "moved")
    with pytest.raises(Refused, match="No such file"):
        ready(Again(root=root))
    assert not ready(Again(root=root, trajectories=tmp_path / "moved")).new


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            [f"batch.micro_batch_tokens={LONGEST - 1}"],
            f"batch.micro_batch_tokens: task-0__000 has {LONGEST} tokens, a micro-batch"
            f" {LONGEST - 1} at most",
        ),
        (
            ['objective.loss={name="dppo_topk"}'],
            "objective.loss: dppo_topk needs alternatives, and task-0__000 has none; record with",
        ),
        (["policy.path=/nowhere"], "policy.path: /nowhere: no config.json can be read"),
        (
            ["objective.terms.kl=0.1", "policy.reference=/nowhere"],
            "policy.reference: /nowhere: no config.json can be read there; name a checkpoint",
        ),
    ],
)
def test_what_cannot_be_trained_as_asked_is_refused(
    place: Path, tmp_path: Path, given: list[str], said: str
) -> None:
    before = disk(place, tmp_path)
    assert refused(asked(place, tmp_path / "run", *given)).startswith(said)
    assert disk(place, tmp_path) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_a_config_that_is_none_of_a_model_is_refused(
    place: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "config.json").write_text(text, "utf-8")
    said = refused(asked(place, tmp_path / "run", f"policy.path={tmp_path}"))
    assert said == f"policy.path: {tmp_path}: no config.json can be read there; name a checkpoint"


SPOILT: list[tuple[Callable[[Trajectory], Trajectory], list[str], str]] = [
    (
        rewarded(lambda *_: 0.5),
        [],
        "no group can be learned from: 3 of 3 are no_variance",
    ),
    (
        lambda row: replace(row, outcome=replace(row.outcome, loss_live=False)),
        [],
        "no group can be learned from: 3 of 3 are not_live",
    ),
    (
        lambda row: replace(
            row, identity=replace(row.identity, group_id=row.identity.trajectory_id)
        ),
        [],
        "no group can be learned from: 9 of 9 are few_valid",
    ),
    (
        rewarded(lambda group, sample: sample - 1.0 if group == 2 else float(sample)),
        ["objective.advantage.name=maxrl"],
        "objective.advantage: maxrl divides by the mean reward, and that of group task-2 is not",
    ),
    (
        lambda row: replace(row, identity=replace(row.identity, sampling=Sampling(top_k=20))),
        [],
        "task-0__000: was sampled with top_k 20, whose distribution no trainer makes again",
    ),
    (
        lambda row: replace(row, identity=replace(row.identity, tokenizer_digest="ab" * 32)),
        [],
        "task-0__000: its ids are of tokenizer abababababab, the policy's is ",
    ),
    (
        lambda row: replace(row, episode=replace(row.episode, evaluation=True)),
        [],
        "{store}: no trajectory in it can be trained on; they are all of an evaluation",
    ),
    (
        lambda row: replace(
            row,
            identity=replace(
                row.identity,
                sampling=Sampling(
                    temperature=0.5 + row.identity.sample % 2 / 4, logprobs_mode="processed"
                ),
            ),
        ),
        [],
        "temperatures differ: task-2__002 at 0.5, task-2__001 at 0.75; train on what was sampled",
    ),
]


@pytest.mark.parametrize(("change", "given", "said"), SPOILT)
def test_trajectories_that_cannot_be_learned_from_are_refused(
    place: Path,
    tmp_path: Path,
    change: Callable[[Trajectory], Trajectory],
    given: list[str],
    said: str,
) -> None:
    store = rewritten(place, tmp_path / "store", change)
    before = disk(place, tmp_path)
    line = refused(asked(place, tmp_path / "run", *given, store=store))
    assert line.startswith(said.format(store=store))
    assert disk(place, tmp_path) == before


def test_kl_without_a_reference_and_no_policy_are_refused_with_the_settings(place: Path) -> None:
    with pytest.raises(Refused, match=r"kl is above 0 and policy\.reference names no"):
        runs.settings(place / "policy", "objective.terms.kl=0.1")
    with pytest.raises(Refused, match=r"^policy: must be given"):
        read(Settings, None, [])


def test_where_a_run_is_or_a_file_no_other_is_begun(place: Path, tmp_path: Path) -> None:
    root = begun(place, tmp_path / "run")
    (tmp_path / "file").touch()
    before = disk(place, tmp_path)
    assert refused(asked(place, root)).startswith(f"{root}: holds a run; go on with it by --resume")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        said = refused(asked(place, out))
        assert said == f"{tmp_path / 'file'}: is a file; name a directory with --out"
    assert disk(place, tmp_path) == before


def test_of_two_that_were_prepared_for_one_place_only_one_is_begun(
    place: Path, tmp_path: Path
) -> None:
    root = tmp_path / "run"
    late = ready(asked(place, root, "run.seed=2"))
    root.mkdir()
    with locked(root):  # the other one is about to begin
        before = disk(place, root)
        with pytest.raises(Refused, match="another process trains here"):
            run(late, runs.Heard())
        assert disk(place, root) == before
    begun(place, root, "run.seed=1")
    before = disk(place, root)
    with pytest.raises(Refused, match="holds a run; go on with it by --resume"):
        run(late, runs.Heard())
    assert disk(place, root) == before


def test_another_schema_is_refused_by_both_versions(place: Path, tmp_path: Path) -> None:
    foreign(place / "store", tmp_path / "store")
    with pytest.raises(OtherSchema, match=r"'envkit\.trajectory/2\.0'.*'envkit\.trajectory/1\.0'"):
        ready(asked(place, tmp_path / "run", store=tmp_path / "store"))
    assert not (tmp_path / "run").exists()


# --- what is not gone on with ---------------------------------------------------------------------


def test_where_there_is_no_run_none_is_gone_on_with(tmp_path: Path) -> None:
    said = f"{tmp_path}: no run there (run.json: No such file or directory); name the --out of one"
    assert refused(Again(root=tmp_path)) == said
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_its_settings_is_not_gone_on_with(place: Path, tmp_path: Path) -> None:
    root = begun(place, tmp_path / "run")
    (root / "config.toml").unlink()
    said = f"{root / 'config.toml'}: No such file or directory"
    assert refused(Again(root=root)) == said


def more(store: Path) -> None:
    """One row is added."""
    row = next(iter(Store(store)))
    with Writer.open(store) as writer:
        writer.append(named(row, "more"))


def fewer(store: Path) -> None:
    """One row is damaged."""
    spoil(store, "task-1__001")


def rated(store: Path) -> None:
    """All have other rewards."""
    change = rewarded(lambda group, sample: float(sample))
    rows = [change(row) for row in Store(store)]
    shutil.rmtree(store)
    with Writer.open(store) as writer:
        for row in rows:
            writer.append(row)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (more, "10 rows, 9 then)"),
        (fewer, "8 rows, 9 then; "),
        (rated, "9 rows, 9 then)"),
    ],
)
def test_a_run_does_not_go_on_with_other_trajectories(
    place: Path, tmp_path: Path, change: Callable[[Path], None], counts: str
) -> None:
    store = tmp_path / "store"
    shutil.copytree(place / "store", store)
    root = begun(place, tmp_path / "run", store=store)
    change(store)
    before = disk(place, tmp_path)
    said = refused(Again(root=root))
    assert said.startswith(f"{store}: is not what the run was begun on ({counts}")
    assert said.endswith("name what it was by --trajectories, or begin another run")
    assert ("trajectory 'task-1__001': " in said) == (change is fewer)
    assert disk(place, tmp_path) == before


def test_that_trajectories_are_others_is_said_before_anything_else_of_them(
    place: Path, tmp_path: Path
) -> None:
    root = begun(place, tmp_path / "run", f"batch.micro_batch_tokens={LONGEST}")
    other = recorded.Asked(groups=1, samples=2, said=9)
    recorded.record(tmp_path / "other", place / "policy", other)
    said = refused(Again(root=root, trajectories=tmp_path / "other"))
    assert said.startswith(f"{tmp_path / 'other'}: is not what the run was begun on (2 rows, 9")


def spoil(store: Path, row: str) -> None:
    """One bit of a row's bytes."""
    for file in segment_files(store):
        for each in read_segment(file).places:
            if each.trajectory_id == row:
                data = bytearray(file.read_bytes())
                data[each.start + each.length // 2] ^= 1
                file.write_bytes(data)


def foreign(store: Path, to: Path) -> None:
    """A store with a segment of another major version."""
    from envkit.trajectory.columns import CHECKSUM, encode
    from envkit.trajectory.head import head_of
    from envkit.trajectory.segment import Row, encode_segment

    shutil.copytree(store, to)
    row = named(next(iter(Store(store))), "foreign")
    batch = encode(row)
    made = Row(head=head_of(row), checksum=batch.column(CHECKSUM)[0].as_py(), batch=batch)
    file = to / "segment-00000009.arrow"
    file.write_bytes(encode_segment([made], "envkit.trajectory/2.0"))
