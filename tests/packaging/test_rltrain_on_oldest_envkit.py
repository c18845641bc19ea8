# SPDX-License-Identifier: Apache-2.0
"""rltrain as it is now on the oldest envkit that it says it accepts, whose wheel is kept."""

import ast
import json
import subprocess
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from envkit.trajectory.segment import read_segment
from envkit.trajectory.store import segment_files

pytestmark = pytest.mark.packaging

HERE = Path(__file__).resolve().parent
PACKAGES = HERE.parents[1] / "packages"
STORES = PACKAGES / "envkit/tests/trajectory/golden"
(OLDEST,) = (HERE / "golden").glob("envkit-*.whl")
ROWS = [json.loads(line) for line in (STORES / "rows.jsonl").read_text("utf-8").splitlines()]

type Typed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def programs(clean_environment: Callable[..., Path], wheel_of: Callable[[str], Path]) -> Path:
    return clean_environment(wheel_of("rltrain"), OLDEST)


@pytest.fixture
def typed(programs: Path, call: Typed, tmp_path: Path) -> Typed:
    """A program of that environment with these words, in an empty directory."""

    def run(program: str, *words: object) -> subprocess.CompletedProcess[str]:
        return call(programs / program, *map(str, words), cwd=tmp_path)

    return run


# --- what is installed ----------------------------------------------------------------------------


def test_the_kept_wheel_is_of_the_lowest_version_that_rltrain_accepts() -> None:
    project = tomllib.loads((PACKAGES / "rltrain/pyproject.toml").read_text("utf-8"))["project"]
    needs = [each for each in map(Requirement, project["dependencies"]) if each.name == "envkit"]
    lowest = [Version(s.version) for each in needs for s in each.specifier if s.operator == ">="]
    assert lowest == [parse_wheel_filename(OLDEST.name)[1]]


def test_the_kept_wheel_and_no_torch_is_what_is_installed(typed: Typed) -> None:
    code = (
        "import importlib.metadata as m, importlib.util as u;"
        "print(m.distribution('envkit').read_text('direct_url.json'), u.find_spec('torch'))"
    )
    url, torch = typed("python", "-c", code).stdout.rsplit(maxsplit=1)
    assert json.loads(url)["url"] == OLDEST.as_uri()
    assert torch == "None"


def test_all_that_rltrain_imports_of_envkit_is_in_the_kept_wheel(
    wheel_of: Callable[[str], Path],
) -> None:
    envkit = trees(OLDEST)
    asked = {each for tree in trees(wheel_of("rltrain")).values() for each in imported(tree)}
    assert ("envkit.trajectory.store", "Store") in asked
    lacking = [
        f"{module}.{name}"
        for module, name in sorted(asked)
        if f"{module}.{name}" not in envkit
        and (module not in envkit or name not in bound(envkit[module].body))
    ]
    assert lacking == []


def trees(wheel: Path) -> dict[str, ast.Module]:
    """Every module of a wheel by its name."""
    with zipfile.ZipFile(wheel) as opened:
        files = [name for name in opened.namelist() if name.endswith(".py")]
        return {module_name(name): ast.parse(opened.read(name)) for name in files}


def module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a module takes of envkit, also where only a function or a type checker does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "envkit":
            yield from ((str(node.module), each.name) for each in node.names)
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names if each.name.startswith("envkit.")]
            yield from ((each.rpartition(".")[0], each.rpartition(".")[2]) for each in names)


def bound(body: Sequence[ast.stmt]) -> set[str]:
    """The names that a module's statements give a meaning."""
    names: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.Import(aliases) | ast.ImportFrom(names=aliases):
                names |= {each.asname or each.name for each in aliases}
            case ast.Assign(targets):
                names |= {each.id for each in targets if isinstance(each, ast.Name)}
            case ast.AnnAssign(ast.Name(name)) | ast.TypeAlias(ast.Name(name)):
                names.add(name)
            case _:
                pass
    return names


# --- what it says ---------------------------------------------------------------------------------


def test_help_and_version_are_printed(typed: Typed) -> None:
    done = typed("rltrain", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert " fit " in done.stdout
    assert typed("rltrain", "--version").stdout.startswith("rltrain ")


def test_what_needs_torch_says_so_in_one_line(typed: Typed) -> None:
    words = ("--trajectories", STORES / "1.0", "--policy", "policy", "--out", "run")
    done = typed("rltrain", "fit", "tiny-cpu", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rltrain: torch is not installed; pip install 'rltrain[torch]'\n"


def test_the_report_of_a_run_is_a_page_with_its_style(typed: Typed, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"rltrain": "0.1.0", "seed": 7}), "utf-8")
    lines = [
        {"step": step, "time": 1.77e9 + step, "reward/mean": 0.25 * step, "loss/entropy": 1.5}
        for step in (1, 2)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    done = typed("rltrain", "report", run, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["page"] == str(run / "report.html")
    style = (PACKAGES / "rltrain/src/rltrain/track/page.css").read_text("utf-8")
    assert style.strip() in (run / "report.html").read_text("utf-8")


# --- what it reads --------------------------------------------------------------------------------


def test_the_kept_envkit_writes_the_kept_stores(typed: Typed, tmp_path: Path) -> None:
    done = typed("python", "-W", "error", STORES / "make.py", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "rows.jsonl").read_bytes() == (STORES / "rows.jsonl").read_bytes()
    for version in ("1.0", "1.9"):
        assert sealed(tmp_path / version) == sealed(STORES / version)


def sealed(store: Path) -> list[tuple[str, str, int]]:
    """Each row by version and id, with the checksum of its values."""
    return [
        (segment.version, place.trajectory_id, place.checksum)
        for segment in map(read_segment, segment_files(store))
        for place in segment.places
    ]


def test_rltrain_takes_every_row_of_a_store_of_its_major(typed: Typed) -> None:
    told = taken(typed, STORES / "1.0")
    assert told["groups"] == {
        "north": ["north__000", "north__001"],
        "south": ["south__000", "south__001"],
        "east": ["east__001"],
        "west": ["west__000"],
    }
    assert (told["evaluations"], told["damaged"], told["newest"]) == (1, [], 8)
    expect([row for row in ROWS if not row["episode"]["evaluation"]], told["samples"])


def test_rltrain_takes_a_store_of_a_later_minor_as_if_it_were_ours(typed: Typed) -> None:
    told = taken(typed, STORES / "1.9")
    names = ("north__000", "south__000", "east__001")
    assert (told["evaluations"], told["damaged"]) == (0, [])
    expect([row for row in ROWS if row["identity"]["trajectory_id"] in names], told["samples"])


def test_a_store_of_another_major_is_refused_in_one_line_with_both_versions(typed: Typed) -> None:
    done = typed("python", HERE / "read_store.py", STORES / "2.0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"rltrain: {STORES / '2.0/segment-00000001.arrow'}: schema is 'envkit.trajectory/2.0',"
        " this version reads 'envkit.trajectory/1.0'; read it with an envkit that does\n"
    )


def taken(typed: Typed, store: Path) -> dict[str, Any]:
    done = typed("python", "-W", "error", HERE / "read_store.py", store)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def expect(rows: list[Any], samples: list[Any]) -> None:
    """Each sample is what a trainer must take of its row."""
    assert len(samples) == len(rows)
    for row, sample in zip(rows, samples, strict=True):
        right = as_sample(row)
        assert {name: sample[name] for name in right} == right


def as_sample(row: Any) -> dict[str, Any]:
    identity, episode, outcome = row["identity"], row["episode"], row["outcome"]
    stream, calls = episode["stream"], episode["calls"]
    return {
        "trajectory_id": identity["trajectory_id"],
        "group_id": identity["group_id"],
        "token_ids": stream["token_ids"],
        "mask": stream["loss_mask"],
        "logprobs": stream["logprobs"],
        "weight_version": stream["weight_version"],
        "temperature": identity["sampling"]["temperature"],
        "reward": outcome["reward"],
        "valid": outcome["reward_valid"],
        "live": outcome["loss_live"],
        "stop": episode["stop"],
        "environment_tokens": sum(
            each["stop"] - each["start"]
            for each in stream["segments"]
            if each["kind"] in ("tool", "harness")
        ),
        "turns": episode["used"]["turns"],
        "calls": len(calls),
        "calls_ok": sum(each["ok"] for each in calls),
        "topk_ids": stream["topk_ids"],
        "topk_logprobs": stream["topk_logprobs"],
    }
