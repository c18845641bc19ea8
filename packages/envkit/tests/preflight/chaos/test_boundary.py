# SPDX-License-Identifier: Apache-2.0
"""Nothing that judges a trial knows what the injector did to it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import envkit

SOURCE = Path(envkit.__file__).parent
CHAOS = SOURCE / "preflight" / "chaos"
MAY_KNOW = {
    "preflight/floor.py": {"envkit.preflight.chaos.order"},  # which attempts are struck
    "preflight/begin.py": {"envkit.preflight.chaos.command"},
    "preflight/command.py": {"envkit.preflight.chaos.command"},
    "cli.py": {"envkit.preflight.chaos.command"},
}
"""The command line, and what hands a struck attempt its layer."""


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_outside_this_package_only_the_launcher_and_the_command_line_know_of_chaos() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(CHAOS):
            continue
        name = path.relative_to(SOURCE).as_posix()
        known = {each for each in _imports(path) if each.startswith("envkit.preflight.chaos")}
        allowed = MAY_KNOW.get(name, set())
        assert all(any(each.startswith(a) for a in allowed) for each in known), f"{name}: {known}"


def test_the_log_is_read_by_the_score_alone() -> None:
    readers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if {"log.read(", "chaos.jsonl"} & set(_mentions(path))
    }
    assert readers == {"preflight/chaos/log.py", "preflight/chaos/score.py"}


def _mentions(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if "envkit.preflight.chaos" in text or path.is_relative_to(CHAOS):
        yield from (word for word in ("log.read(",) if word in text)
    if '"chaos.jsonl"' in text:
        yield "chaos.jsonl"
