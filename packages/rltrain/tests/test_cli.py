# SPDX-License-Identifier: Apache-2.0
import pytest
from typer.testing import CliRunner

from rltrain import __version__
from rltrain.cli import app, main

runner = CliRunner()


def test_help_names_every_command() -> None:
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in ("fit", "overfit", "plan", "check", "report", "status", "export", "tiny-policy"):
        assert f" {name} " in result.stdout


def test_version_is_printed() -> None:
    assert runner.invoke(app, ["--version"]).stdout == f"rltrain {__version__}\n"


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit status of a whole command line."""
    monkeypatch.setattr("sys.argv", ["rltrain", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["fti"], "No such command 'fti'. Did you mean 'fit'?; see rltrain --help"),
        (["tiny-policy"], "Missing argument 'OUT'; see rltrain tiny-policy --help"),
        (["fit", "--zzz"], "No such option: --zzz; see rltrain fit --help"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exits_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    line: str,
) -> None:
    assert typed(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"rltrain: {line}\n")


def test_exit_codes_of_commands_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(monkeypatch, "--version") == 0
    assert typed(monkeypatch, "fit") == 2
