# SPDX-License-Identifier: Apache-2.0
"""The rltrain wheel with nothing but the envkit wheel of the same build."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

SOURCE = Path(__file__).resolve().parents[2] / "packages/rltrain/src"
READ_BY_THE_PROGRAM = (
    "rltrain/recipes/overfit.toml",
    "rltrain/recipes/qwen35-397b.toml",
    "rltrain/recipes/qwen36-35b.toml",
    "rltrain/recipes/tiny-cpu.toml",
    "rltrain/tiny/templates/families.json",
    "rltrain/tiny/templates/qwen3.jinja",
    "rltrain/track/page.css",
)


@pytest.fixture(scope="module")
def programs(clean_environment: Callable[..., Path], wheel_of: Callable[[str], Path]) -> Path:
    return clean_environment(wheel_of("rltrain"), wheel_of("envkit"))


def test_wheel_carries_its_licence_and_its_types(wheel_of: Callable[[str], Path]) -> None:
    names = zipfile.ZipFile(wheel_of("rltrain")).namelist()
    assert "rltrain/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert all(name.startswith(("rltrain/", "rltrain-")) for name in names)


def test_wheel_carries_everything_that_is_read_and_is_no_code(
    wheel_of: Callable[[str], Path],
) -> None:
    with zipfile.ZipFile(wheel_of("rltrain")) as wheel:
        carried = {name for name in wheel.namelist() if not name.endswith(".py")}
        assert all(wheel.getinfo(name).file_size for name in READ_BY_THE_PROGRAM)
    there = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert {name for name in carried if ".dist-info/" not in name} == there


def test_help_works_and_a_command_without_its_extra_names_it(
    programs: Path, call, tmp_path: Path
) -> None:
    assert call(programs / "rltrain", "--help", cwd=tmp_path).returncode == 0
    done = call(programs / "rltrain", "plan", "tiny-cpu", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rltrain: torch is not installed; pip install 'rltrain[torch]'\n"


def test_it_runs_on_our_envkit(programs: Path, call, tmp_path: Path) -> None:
    code = "import envkit, importlib.metadata as m; print(m.metadata('envkit')['Summary'])"
    summary = call(programs / "python", "-c", code, cwd=tmp_path).stdout
    assert summary.startswith("Trustworthy agent environments"), "another project's envkit"
