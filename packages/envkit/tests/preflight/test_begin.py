# SPDX-License-Identifier: Apache-2.0
"""A run that cannot be resumed is refused in one line, which says what to do."""

from pathlib import Path
from typing import Any

import pytest

from envkit.fault import HarnessError
from envkit.preflight.again import to_keep
from envkit.preflight.asked import as_asked, write_asked
from envkit.preflight.begin import begin
from envkit.preflight.options import Options
from envkit.preflight.place import open_place, release

from ..trial.tiny import make_task


def options(**changes: Any) -> Options:
    values: dict[str, Any] = {
        "source": Path("tasks"), "agent": "replay", "env": "local", "concurrency": 2,
        "repeat": None, "limit": None, "max_fault_rate": "0.5", "seed": 0, "as_json": False,
        "report_dir": None,
    }  # fmt: skip
    return Options(**{**values, **changes})


def killed(make: Any, **asked: Any) -> Path:
    """The directory of a run that was killed before anything of it had ended."""
    for name in ("fact", "workbook"):
        make_task(make.tmp_path / "tasks", name)
    place = open_place(make.tmp_path / "killed", "0123456789abcdef")
    write_asked(place.root, as_asked(make.plan(), to_keep(options(**asked))))
    release(place)
    return place.root


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("asked", "to_do"),
    [
        ({"ramp": "8,64"}, "run it anew with --ramp 8,64"),
        ({"chaos": Path("/rules.toml")}, "run it anew with --chaos /rules.toml"),
    ],
)
def test_what_must_be_whole_is_not_resumed(make: Any, asked: dict[str, Any], to_do: str) -> None:
    root = killed(make, **asked)
    before = contents(root)
    with pytest.raises(HarnessError) as refused:
        begin(options(resume=root))
    line = str(refused.value)
    assert line.startswith(f"--resume {root}: ")
    assert line.endswith(to_do)
    assert "\n" not in line
    assert contents(root) == before


def test_an_ordinary_run_goes_on_under_its_own_token(make: Any) -> None:
    start = begin(options(resume=killed(make, seed=3)))
    release(start.place)
    assert (start.options.seed, start.run_token) == (3, make.plan().run_token)
