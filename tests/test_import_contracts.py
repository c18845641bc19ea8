# SPDX-License-Identifier: Apache-2.0
"""The import contracts refuse what they are there to refuse."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of both packages that a test may spoil."""
    folder = tmp_path_factory.mktemp("sources")
    for package in ("envkit", "rltrain"):
        source = ROOT / "packages" / package / "src" / package
        shutil.copytree(source, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def contracts_broken(sources: Path) -> str:
    """What the linter says of the copy; empty when every contract is kept."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(program), "--no-cache", str(ROOT / "pyproject.toml")],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("envkit/fault/errors.py", "import torch", "the trainer's libraries BROKEN"),
        ("envkit/deadline.py", "import rltrain", "the trainer's libraries BROKEN"),
        ("envkit/fault/errors.py", "import envkit.task", "before them in the flow BROKEN"),
        ("envkit/audit/types.py", "import harbor", "neither Harbor nor MCP BROKEN"),
    ],
)
def test_a_forbidden_import_is_named(sources: Path, module: str, line: str, contract: str) -> None:
    path = sources / module
    before = path.read_text("utf-8")
    path.write_text(f"{before}\n{line}\n", "utf-8")
    try:
        said = contracts_broken(sources)
    finally:
        path.write_text(before, "utf-8")
    assert contract in said
