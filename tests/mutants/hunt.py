# SPDX-License-Identifier: Apache-2.0
"""Breaks a copy of our code in one place after the other and looks whether the tests see it.

Contract: the tree itself is only read. A mutant is killed where each test named for it passes on
the code as it is and fails by an assertion on the mutant; whatever else becomes of them is told.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from . import outcomes
from .outcomes import ASSERTION, FILE, PASSED, PLUGIN
from .table import SOURCE, Mutant

RUN_S: Final = 600
"""All the tests of one mutant; first, all tests of all of them."""
TEST_S: Final = 120
_COPIED: Final = ("packages", "pyproject.toml")
_LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", ".pytest_cache", "*.egg-info", "dist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What became of one mutant."""

    mutant: Mutant
    wrong: str
    """Why it counts as alive; empty where it was killed."""
    by: tuple[str, ...] = ()
    """What the tests that killed it say."""
    seconds: float


@dataclass(slots=True)
class Ended:
    """How the tests of one run ended."""

    cases: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Test, how it ended, and what it says of that."""
    said: str = ""
    """The last of what pytest said."""

    def of(self, node: str) -> set[str]:
        """Of a test's cases."""
        return {how for name, how, _ in self.cases if _is_of(name, node)}

    def why(self, node: str) -> str:
        """What the first of a test's cases that failed says."""
        failed = (why for name, how, why in self.cases if _is_of(name, node) and how != PASSED)
        return next(failed, "")


class Copy:
    """A copy of the tree, in which tests run on the code of the copy."""

    def __init__(self, root: Path, place: Path) -> None:
        self.place = place
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, place / name, ignore=_LEFT_OUT)
            else:
                shutil.copy(root / name, place / name)
        self._plugins = place / "plugins"
        self._plugins.mkdir()
        shutil.copy(outcomes.__file__, self._plugins / f"{PLUGIN}.py")
        self._check()

    @contextmanager
    def mutated(self, mutant: Mutant) -> Generator[None]:
        """With one change in it."""
        path = self.place / SOURCE / mutant.file
        text = path.read_text("utf-8")
        self._write(path, text.replace(mutant.old, mutant.new))
        try:
            yield
        finally:
            self._write(path, text)

    def run(self, nodes: Iterable[str]) -> Ended:
        """Run tests, each once."""
        told = self.place / "outcomes.jsonl"
        told.unlink(missing_ok=True)
        options = ("-q", "--tb=short", "-p", PLUGIN, "-p", "no:cacheprovider")
        command = [sys.executable, "-m", "pytest", *options, f"--timeout={TEST_S}"]
        ended = Ended()
        try:
            done = subprocess.run(
                [*command, *dict.fromkeys(nodes)],
                cwd=self.place,
                env={**self._env(), FILE: str(told)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=RUN_S,
                check=False,
            )
            ended.said = done.stdout[-2000:]
        except subprocess.TimeoutExpired:
            ended.said = f"did not end in {RUN_S} s"
        if told.exists():
            ended.cases = [tuple(json.loads(line)) for line in told.read_text().splitlines()]
        return ended

    def _env(self) -> dict[str, str]:
        paths = (self.place / SOURCE.rpartition("/")[0], self._plugins)
        return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}

    def _check(self) -> None:
        """See that it is the copy that is imported."""
        name = SOURCE.rpartition("/")[2]
        command = [sys.executable, "-c", f"import {name}; print({name}.__file__)"]
        found = subprocess.run(
            command, env=self._env(), capture_output=True, text=True, timeout=60, check=True
        )
        if not Path(found.stdout.strip()).is_relative_to(self.place):
            raise RuntimeError(f"{name} is imported from {found.stdout.strip()}, not from the copy")

    def _write(self, path: Path, text: str) -> None:
        """What was compiled may have the size and the second of what is written now."""
        path.write_text(text, "utf-8")
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def hunt(root: Path, mutants: Sequence[Mutant]) -> Iterator[Found]:
    """One after the other; first all their tests on the code as it is."""
    with tempfile.TemporaryDirectory(prefix="envkit-mutants-") as place:
        copy = Copy(root, Path(place).resolve())
        problems = [mutant.problem(copy.place) for mutant in mutants]
        fit = [mutant for mutant, wrong in zip(mutants, problems, strict=True) if not wrong]
        sound = copy.run(node for mutant in fit for node in mutant.nodes)
        for mutant, problem in zip(mutants, problems, strict=True):
            began = time.monotonic()
            if wrong := problem or _wrong(sound, mutant, PASSED, "as the code is"):
                yield Found(mutant=mutant, wrong=wrong, seconds=0.0)
                continue
            with copy.mutated(mutant):
                ended = copy.run(mutant.nodes)
            yield Found(
                mutant=mutant,
                wrong=_wrong(ended, mutant, ASSERTION, "on the mutant"),
                by=tuple(ended.why(node) for node in mutant.nodes),
                seconds=time.monotonic() - began,
            )


def _is_of(name: str, node: str) -> bool:
    return name == node or name.startswith(f"{node}[")


def _wrong(ended: Ended, mutant: Mutant, wanted: str, where: str) -> str:
    """The first test that did not end as it must: a case that passes beside one that fails may."""
    for node in mutant.nodes:
        seen = ended.of(node)
        name = node.rpartition("::")[2]
        if not seen:
            return f"{name} was not run {where}: {ended.said.strip()[-300:]}"
        if seen != {wanted} and not (wanted == ASSERTION and seen == {ASSERTION, PASSED}):
            return f"{name} {where}: {', '.join(sorted(seen))}"
    return ""
