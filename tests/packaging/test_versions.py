# SPDX-License-Identifier: Apache-2.0
"""Each package has one version of its own, in one place, and a changelog."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import envkit
import rltrain

pytestmark = pytest.mark.packaging

PACKAGES = Path(__file__).resolve().parents[2] / "packages"
VERSIONS = {"envkit": envkit.__version__, "rltrain": rltrain.__version__}


@pytest.mark.parametrize("package", VERSIONS)
def test_wheel_has_the_version_of_its_module(package: str, wheel_of: Callable[[str], Path]) -> None:
    assert wheel_of(package).name.split("-")[1] == VERSIONS[package]


def test_rltrain_accepts_the_envkit_beside_it_and_no_breaking_one() -> None:
    project = tomllib.loads((PACKAGES / "rltrain/pyproject.toml").read_text("utf-8"))["project"]
    (need,) = [
        requirement
        for requirement in map(Requirement, project["dependencies"])
        if requirement.name == "envkit"
    ]
    ours = Version(envkit.__version__)
    assert ours in need.specifier
    assert Version(f"{ours.major}.{ours.minor + 1}") not in need.specifier


@pytest.mark.parametrize("package", VERSIONS)
def test_changelog_has_a_place_for_the_current_version(package: str) -> None:
    text = (PACKAGES / package / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert headings[0] in ("Unreleased", VERSIONS[package])


def test_extras_of_envkit_are_those_its_users_are_told_of() -> None:
    project = tomllib.loads((PACKAGES / "envkit/pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    assert extras == {"trajectories", "servers", "run", "docker", "modal", "aws", "all"}
