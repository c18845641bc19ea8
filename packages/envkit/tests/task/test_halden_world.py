# SPDX-License-Identifier: Apache-2.0
"""The whole of `halden-pryce`: the same bytes wherever it is generated, and what it holds."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("reportlab", reason="not run: office libraries absent")
pytest.importorskip("pptx", reason="not run: office libraries absent")

from .world_code import world_modules

WORLD = Path(__file__).parents[4] / "tasks/worlds/halden-pryce"
PLACES = (
    {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"},
    {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "4242", "SOURCE_DATE_EPOCH": "9"},
)


def generate(out: Path, cwd: Path, place: dict[str, str]) -> None:
    """Run the generator as `envkit.task.generate` does, but elsewhere."""
    env = {**place, "PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-s", str(WORLD / "generate.py"), str(out)]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr


def digests(out: Path) -> dict[str, str]:
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in out.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The world, generated in two places that differ in all that must not matter."""
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    generate(first / "out", WORLD, PLACES[0])
    generate(second / "a longer name", second, PLACES[1])
    return first / "out", second / "a longer name"


@pytest.mark.integration
def test_zone_locale_directory_and_hash_seed_leave_no_trace(twice: tuple[Path, Path]) -> None:
    first, second = map(digests, twice)
    assert first == second


@pytest.mark.integration
def test_there_is_everything_that_a_firm_keeps(twice: tuple[Path, Path]) -> None:
    drive = twice[0] / "filesystem"
    kinds = [path.suffix for path in drive.rglob("*") if path.is_file()]
    assert kinds.count(".pdf") >= 25
    assert kinds.count(".xlsx") >= 8
    assert kinds.count(".pptx") >= 3
    assert kinds.count(".mbox") >= 1
    assert kinds.count(".ics") == 1
    state = twice[0] / "apps_data"
    assert sorted(path.name for path in state.iterdir()) == ["calendar", "chat", "mail"]


@pytest.mark.integration
def test_every_decoy_stands_on_the_drive_beside_what_supersedes_it(
    twice: tuple[Path, Path],
) -> None:
    (decoys,) = world_modules(WORLD.name, ["facts.decoys"])
    drive = twice[0] / "filesystem"
    names = {path.name for path in drive.rglob("*")}
    for decoy in decoys.DECOYS:
        assert (WORLD.parents[1] / decoy.task / "task.toml").is_file(), decoy
        if "/" in decoy.stands_in:
            assert (drive / decoy.stands_in).is_file(), decoy
        assert set(re.findall(r"[\w-]+\.(?:pdf|xlsx|pptx)", decoy.superseded_by)) <= names, decoy


@pytest.mark.integration
def test_no_document_names_the_machine_that_it_was_made_on(twice: tuple[Path, Path]) -> None:
    for out in twice:
        for path in out.rglob("*"):
            assert not path.is_file() or str(out).encode() not in path.read_bytes(), path
