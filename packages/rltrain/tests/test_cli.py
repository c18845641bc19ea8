# SPDX-License-Identifier: Apache-2.0
import pytest
from typer.testing import CliRunner

from rltrain import __version__
from rltrain.cli import PLANNED, app

runner = CliRunner()


def test_help_names_every_command_and_says_that_it_is_not_built() -> None:
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert result.stdout.count("Not built yet: ") == len(PLANNED)
    for name in ("fit", "overfit", "plan", "check", "report", "status"):
        assert f" {name} " in result.stdout


@pytest.mark.parametrize("name", sorted(PLANNED))
def test_a_command_that_is_not_built_exits_2_with_one_line(name: str) -> None:
    result = runner.invoke(app, [name])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"rltrain {name}: not built yet in rltrain {__version__}\n"


def test_version_is_printed() -> None:
    assert runner.invoke(app, ["--version"]).stdout == f"rltrain {__version__}\n"
