# SPDX-License-Identifier: Apache-2.0
"""Programs run by a warmed and by a cold interpreter: the same output, errors and status."""

import re
import tomllib
from pathlib import Path

import pytest

from .conftest import ENV, Both, argv, shell

pytestmark = pytest.mark.integration

SHOW = "import sys; print(sys.argv, sys.path, sys.executable, sys.orig_argv, sys.flags)"

_PROGRAMS = tomllib.loads((Path(__file__).parent / "programs.toml").read_text())
WARM, COLD = (
    {name: script.replace("SHOW", SHOW) for name, script in _PROGRAMS[kind].items()}
    for kind in ("warm", "cold")
)

_VARIES = re.compile(r"0x[0-9a-f]+|(?<=line \d: ) *\d+|'ENVKIT_RUN': '\w+'")
"""Addresses, process ids in a shell's complaints, the token of a run."""


def _text(output: bytes) -> str:
    return _VARIES.sub("", output.decode(errors="backslashreplace"))


def _compare(both: Both, name: str, script: str, env: dict[str, str] = ENV) -> int:
    """Run it both ways; returns how many programs ran warm."""

    async def run() -> int:
        place = f"mkdir -p '/tmp/{name}'; cd '/tmp/{name}'\n"
        before = await both.started()
        warm = await shell(both.warm, place + script, env)
        cold = await shell(both.cold, place + script, env)
        said = [(d.status, _text(d.stdout), _text(d.stderr)) for d in (warm, cold)]
        assert said[0] == said[1]
        assert not warm.timed_out
        return await both.started() - before

    return both.run(run())


@pytest.mark.parametrize("name", WARM)
def test_a_warmed_interpreter_does_what_a_cold_one_does(both: Both, name: str) -> None:
    assert _compare(both, name, WARM[name]) > 0


@pytest.mark.parametrize("name", COLD)
def test_what_it_cannot_do_is_left_to_a_cold_one(both: Both, name: str) -> None:
    assert _compare(both, name, COLD[name]) == (1 if "-m" in COLD[name] else 0)


@pytest.mark.parametrize("name", ["a command", "an error", "exit codes", "kills itself", "input"])
def test_without_a_shell_it_is_the_same(both: Both, name: str) -> None:
    programs = {
        "a command": "import sys, os; print(sys.argv, sys.orig_argv, sys.path, os.getcwd())",
        "an error": "print(1)\n1/0",
        "exit codes": "raise SystemExit(77)",
        "kills itself": "import os; os.kill(os.getpid(), 9)",
        "input": "print(repr(input()))",
    }

    async def run() -> None:
        before = await both.started()
        done = [
            await argv(room, ["python3", "-c", programs[name]]) for room in (both.warm, both.cold)
        ]
        assert len({(d.status, d.stdout, d.stderr) for d in done}) == 1
        assert await both.started() == before + 1

    both.run(run())
