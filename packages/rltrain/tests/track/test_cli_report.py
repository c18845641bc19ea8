# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rltrain.cli import app

from .runs import numbers, run

runner = CliRunner()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return run(tmp_path / "made", {step: numbers(step) for step in (1, 2)})


def test_the_page_is_written_and_told_of_in_four_lines(made: Path) -> None:
    result = runner.invoke(app, ["report", str(made)])
    assert (result.exit_code, result.stderr) == (0, "")
    first, *rest = result.stdout.splitlines()
    assert Path(first).read_text("utf-8").startswith("<!doctype html>\n<html")
    assert Path(first) == made / "report.html"
    assert [line.split()[0] for line in rest] == ["2", "reward", "entropy"]


def test_the_page_goes_where_it_is_wanted(made: Path, tmp_path: Path) -> None:
    result = runner.invoke(app, ["report", str(made), "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 0
    assert (tmp_path / "page.html").exists()
    assert not (made / "report.html").exists()


def test_json_is_one_document_of_the_figures(made: Path) -> None:
    told = json.loads(runner.invoke(app, ["report", str(made), "--json"]).stdout)
    assert told["run"] == str(made)
    assert told["page"] == str(made / "report.html")
    assert (told["steps"], told["last_step"]) == (2, 2)
    assert set(told["reward"]) == {"step", "mean", "fault_share", "low", "high", "count"}
    assert Path(told["page"]).exists()


def test_a_cut_line_is_told_of_and_left_out(made: Path) -> None:
    with (made / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "loss/va')
    result = runner.invoke(app, ["report", str(made)])
    assert result.exit_code == 0
    said = "line 3 is cut, as a kill leaves it, and left out"
    assert result.stderr == f"rltrain: metrics.jsonl: {said}\n"
    assert said in (made / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "nothing: holds no run.json; name a directory that rltrain fit has written"),
        (["file"], "file: holds no run.json; name a directory that rltrain fit has written"),
        (["damaged"], "metrics.jsonl, line 1: is no JSON; mend it or take the file away"),
        (["made", "--out", "no/where"], "No such file or directory; name a FILE"),
        (["made", "--out", "."], "name a FILE that can be written with --out"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exits_2(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "metrics.jsonl").write_text("x\n")
    result = runner.invoke(app, ["report", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.startswith("rltrain: ")
    assert result.stderr.count("\n") == 1


def test_a_report_needs_neither_torch_nor_arrow(made: Path) -> None:
    heavy = ("torch", "numpy", "pyarrow", "pandas", "transformers", "tensorboard", "harbor", "mcp")
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({heavy!r})); "
        f"sys.argv = ['rltrain', 'report', {str(made)!r}]; "
        "from rltrain.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (made / "report.html").exists()


def test_a_run_of_envkit_is_no_run_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    """It has a run.json, too."""
    (tmp_path / "run.json").write_text("{}", "utf-8")
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(
        "holds no config.toml; name a directory that rltrain fit has written\n"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]
