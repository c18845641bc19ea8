# SPDX-License-Identifier: Apache-2.0
"""Promises that the repository makes about itself."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEST_COMMAND = "python -m pip install nox && python -m nox -s tests"
SOURCES = sorted(
    path
    for folder in ("packages", "tests", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*.py")
)


LICENCE = re.compile(r"(#!.*\n)?# SPDX-License-Identifier: Apache-2.0\n")
"""What begins a source file; a program that is executed says first by what."""


def test_ci_runs_exactly_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    script = (ROOT / ".ci/run").read_text("utf-8").splitlines()
    assert TEST_COMMAND in readme
    assert script[-1] == TEST_COMMAND, "its exit status must be the script's"


def test_every_source_file_names_its_licence_first() -> None:
    lacking = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if path.stat().st_size and not LICENCE.match(path.read_text("utf-8"))
    ]
    assert lacking == []


@pytest.mark.parametrize("package", ["envkit", "rltrain"])
def test_each_package_is_whole(package: str) -> None:
    folder = ROOT / "packages" / package
    assert (folder / "src" / package / "py.typed").exists()
    for name in ("README.md", "CHANGELOG.md", "LICENSE"):
        assert (folder / name).stat().st_size > 0


def test_every_module_of_envkit_has_its_place_in_the_flow() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (flow,) = [c for c in settings["tool"]["importlinter"]["contracts"] if c["id"] == "flow"]
    placed = {name.strip(" ()") for layer in flow["layers"] for name in layer.split("|")}
    source = ROOT / "packages/envkit/src/envkit"
    there = {p.stem for p in source.glob("*.py")} | {
        p.parent.name for p in source.glob("*/__init__.py")
    }
    assert there - {"__init__"} <= placed


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=str
)
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_agents_md_fits_on_a_page() -> None:
    assert len((ROOT / "AGENTS.md").read_text("utf-8").splitlines()) <= 60
