# SPDX-License-Identifier: Apache-2.0
"""A run's directory holds one run, whole or not at all, and one process trains in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltrain.loop.directory import (
    CONFIG,
    LOCK,
    MANIFEST,
    Manifest,
    begin,
    expect_free,
    locked,
    machine,
    make,
    manifest_of,
    now,
    versions,
)
from rltrain.refused import Refused

MADE = Manifest(
    started=now(),
    trajectories="store",
    data="d" * 64,
    rows=6,
    groups=2,
    dropped={"task-3": "no_variance"},
    damaged=1,
    evaluations=4,
    policy="policy",
    seed=7,
    versions=versions(),
    machine=machine(),
)


def refused(call: Callable[..., Any], *words: Any) -> str:
    with pytest.raises(Refused) as error:
        call(*words)
    assert "\n" not in str(error.value)
    return str(error.value)


def begun(root: Path) -> Path:
    begin(root, "[run]\nseed = 7\n", MADE)
    return root


# --- what is free ---------------------------------------------------------------------------------


def test_what_is_not_there_and_what_has_other_things_are_free(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    expect_free(tmp_path)
    expect_free(tmp_path / "new" / "below")
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_a_relative_place_is_free_where_nothing_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expect_free(Path("new"))
    expect_free(Path())
    (tmp_path / "file").touch()
    assert refused(expect_free, Path("file/run")).endswith(
        "file: is a file; name a directory with --out"
    )


def test_a_run_is_not_written_over(tmp_path: Path) -> None:
    said = refused(expect_free, begun(tmp_path / "run"))
    assert said.startswith(f"{tmp_path / 'run'}: holds a run; go on with it by --resume")


def test_a_file_and_what_is_below_one_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    said = f"{file}: is a file; name a directory with --out"
    assert refused(expect_free, file) == refused(expect_free, file / "a" / "b") == said


def test_checkpoints_of_a_run_that_lost_its_manifest_are_not_gone_on_from_unasked(
    tmp_path: Path,
) -> None:
    root = begun(tmp_path)
    (root / MANIFEST).unlink()
    expect_free(root)
    (root / "checkpoints" / "step-00000001").mkdir()
    assert refused(expect_free, root).startswith(f"{root}: holds checkpoints of a run without run")


# --- begin ----------------------------------------------------------------------------------------


def test_what_was_begun_is_read_as_it_was_written(tmp_path: Path) -> None:
    root = begun(tmp_path / "some" / "run")
    assert manifest_of(root) == MADE
    assert (root / CONFIG).read_text("utf-8") == "[run]\nseed = 7\n"
    assert sorted(each.name for each in root.iterdir()) == ["checkpoints", CONFIG, MANIFEST]


@pytest.mark.parametrize("step", ["write_part", "publish", "sync_directory"])
@pytest.mark.parametrize("name", [CONFIG, MANIFEST])
def test_a_beginning_that_fails_anywhere_is_no_run_or_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, name: str
) -> None:
    import envkit.durable

    real, written = getattr(envkit.durable, step), iter((CONFIG, MANIFEST))

    def failing(*words: Any) -> None:
        if next(written) == name:
            raise OSError(28, "No space left on device", str(words[0]))
        real(*words)

    root = tmp_path / "run"
    monkeypatch.setattr(envkit.durable, step, failing)
    said = refused(begin, root, "[run]\n", MADE)
    assert "No space left on device; name another --out" in said
    monkeypatch.undo()
    if (step, name) == ("sync_directory", MANIFEST):
        assert manifest_of(root) == MADE
        return
    assert refused(manifest_of, root).startswith(f"{root}: no run there")
    expect_free(root)
    begin(root, "[run]\n", MADE)
    assert manifest_of(root) == MADE


def test_a_place_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    root = tmp_path / "file" / "run"
    for said in (refused(make, root), refused(begin, root, "", MADE)):
        assert said == f"{root}: Not a directory; name another --out"


# --- the manifest ---------------------------------------------------------------------------------


def test_no_run_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    said = refused(manifest_of, tmp_path / "none")
    file = "run.json: No such file or directory"
    assert said == f"{tmp_path / 'none'}: no run there ({file}); name the --out of one"


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (lambda text: text[:-20], "is no manifest of a run: Invalid JSON: "),
        (lambda _: b"", "is no manifest of a run: Invalid JSON: "),
        (lambda text: b"\xff" + text, "is no manifest of a run: Invalid JSON: "),
        (lambda _: b"[]", "is no manifest of a run: Input should be an object"),
        (lambda text: text.replace(b'"rows": 6', b'"rows": "six"'), "of a run: rows: Input"),
        (lambda text: text.replace(b'"seed"', b'"sed"'), "of a run: seed: Field required"),
    ],
)
def test_a_damaged_manifest_is_named_with_what_is_wrong(
    tmp_path: Path, spoilt: Callable[[bytes], bytes], said: str
) -> None:
    file = begun(tmp_path) / MANIFEST
    file.write_bytes(spoilt(file.read_bytes()))
    line = refused(manifest_of, tmp_path)
    assert line.startswith(f"{file}: ")
    assert said in line
    assert line.endswith("; begin another run")


def test_a_manifest_of_a_later_version_may_say_more(tmp_path: Path) -> None:
    file = begun(tmp_path) / MANIFEST
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "mood": "good"}), "utf-8")
    assert manifest_of(tmp_path) == MADE


def test_versions_are_of_what_is_installed_and_the_machine_has_no_name() -> None:
    import platform

    found = versions()
    assert found["python"] == platform.python_version()
    assert {"rltrain", "envkit", "numpy"} <= found.keys()
    assert platform.node() not in machine()


# --- the lock -------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from rltrain.loop.directory import locked

with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_where_another_process_trains_nobody_else_does(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        said = refused(locked(tmp_path).__enter__)
        assert said == f"{tmp_path}: another process trains here; wait for its end"
        other.kill()
    with locked(tmp_path):  # what is killed holds nothing
        pass


def test_it_may_be_held_again_once_it_was_let_go(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path):
            refused(locked(tmp_path).__enter__)
    assert [each.name for each in tmp_path.iterdir()] == [LOCK]
