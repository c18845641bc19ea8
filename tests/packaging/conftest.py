# SPDX-License-Identifier: Apache-2.0
"""Both distributions built from this checkout, and clean environments to install them in."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "constraints" / "harbor-0.26.txt"
PIN_OPTIONS = ("-c", str(PINS), "-b", str(PINS))


def uv(*arguments: str) -> None:
    """Run uv; its whole output is the failure's message."""
    command = [sys.executable, "-m", "uv", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel (built from that sdist) of both packages."""
    folder = tmp_path_factory.mktemp("built")
    for package in ("envkit", "rltrain"):
        source = str(ROOT / "packages" / package)
        uv("build", "--quiet", "-b", str(PINS), "--out-dir", str(folder), source)
    return folder


@pytest.fixture(scope="session")
def wheel_of(built: Path) -> Callable[[str], Path]:
    """Find the one wheel of a package."""

    def find(package: str) -> Path:
        (wheel,) = built.glob(f"{package}-*.whl")
        return wheel

    return find


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make an environment that holds only what the given wheels require."""

    def make(*wheels: Path) -> Path:
        place = tmp_path_factory.mktemp("clean") / "venv"
        uv("venv", "--quiet", "--python", sys.executable, str(place))
        python = str(place / "bin" / "python")
        uv("pip", "install", "--quiet", "--python", python, *PIN_OPTIONS, *map(str, wheels))
        return place / "bin"

    return make


@pytest.fixture(scope="session")
def call() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program of an environment with nothing but HOME and PATH set, outside the checkout."""

    def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        env = {"HOME": os.environ["HOME"], "PATH": f"{program.parent}:{os.defpath}"}
        command = [str(program), *arguments]
        return subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120
        )

    return run
