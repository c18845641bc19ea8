# SPDX-License-Identifier: Apache-2.0
"""Every command that the documentation shows exists, with the options it shows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from envkit.cli import app as envkit
from rltrain.cli import app as rltrain

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "AGENTS.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "packages").glob("*/README.md")),
]
FENCE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown() -> Iterator[tuple[str, list[str]]]:
    """(page, words) of every command in a console block; ``&&`` splits a line."""
    for page in PAGES:
        for block in FENCE.findall(page.read_text("utf-8")):
            for line in filter(None, block.splitlines()):
                for command in line.split("&&"):
                    yield str(page.relative_to(ROOT)), shlex.split(command, comments=True)


def commands_of(program: str) -> list[list[str]]:
    return sorted({tuple(words): words for _, words in shown() if words[0] == program}.values())


APPS = {"envkit": envkit, "rltrain": rltrain}
SHOWN = [words for program in APPS for words in commands_of(program)]


def test_the_documentation_shows_something() -> None:
    assert len(commands_of("envkit")) >= 8
    assert len(commands_of("rltrain")) >= 5


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_shown_command_exists_with_its_options(words: list[str]) -> None:
    app = APPS[words[0]]
    group = typer.main.get_command(app)
    if words[1:] == ["--help"]:
        assert CliRunner().invoke(app, ["--help"]).exit_code == 0
        return
    command = group.commands[words[1]]  # type: ignore[attr-defined]
    known = {name for parameter in command.params for name in parameter.opts}
    options = [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
    assert [word for word in options if word not in known] == []


SESSIONS = sorted({words[words.index("-s") + 1] for _, words in shown() if "-s" in words})


@pytest.mark.parametrize("session", SESSIONS)
def test_shown_nox_session_exists(session: str) -> None:
    text = (ROOT / "noxfile.py").read_text("utf-8")
    assert f"\ndef {session}(" in text or f'name="{session}"' in text
