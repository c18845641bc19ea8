# SPDX-License-Identifier: Apache-2.0
"""The rltrain wheel with nothing but the envkit wheel of the same build."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def programs(clean_environment: Callable[..., Path], wheel_of: Callable[[str], Path]) -> Path:
    return clean_environment(wheel_of("rltrain"), wheel_of("envkit"))


def test_help_works_and_a_command_says_that_it_is_not_built(
    programs: Path, call, tmp_path: Path
) -> None:
    assert call(programs / "rltrain", "--help", cwd=tmp_path).returncode == 0
    done = call(programs / "rltrain", "plan", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("rltrain plan: not built yet")


def test_it_runs_on_our_envkit(programs: Path, call, tmp_path: Path) -> None:
    code = "import envkit, importlib.metadata as m; print(m.metadata('envkit')['Summary'])"
    summary = call(programs / "python", "-c", code, cwd=tmp_path).stdout
    assert summary.startswith("Trustworthy agent environments"), "another project's envkit"
