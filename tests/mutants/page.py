# SPDX-License-Identifier: Apache-2.0
"""The table for people: ``docs/traps.md``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .table import ROOT, SOURCE, TESTS, Mutant, Rule, Table

PAGE: Final = ROOT / "docs/traps.md"
_HEAD: Final = f"""\
# Traps and their tests

Sixteen faults were seen in the code that was published with a recipe for training agents. Each
that concerns the harness has tests here, and each test has a *mutation*: a change of our own code
that brings the fault back and must make the test fail. So does each promise that a trainer relies
on. Mutations and tests are listed in `tests/mutants/mutants.toml`; this page is made from it.

```console
python -m nox -s mutants                 # every mutation, one at a time
python -m nox -s mutants -- 5 mask       # those of one trap and of one promise
python -m nox -s mutants -- --page       # write this page anew
```

The session copies the packages, and works on the copy. A mutation is killed when every test named
for it passes on the code as it is and *fails by an assertion* on the mutant; an import that fails,
a fixture that breaks, another exception or a timeout does not count. A mutation that no longer
applies, because its old text is not found exactly once, counts as alive. Some tests run trials in
real boxes, so the session needs what [trials need](doctor.md).

Paths are relative to `{SOURCE}` and `{TESTS}`.
"""
_PROMISES: Final = "\n## Promises\n\n"
_ELSEWHERE: Final = "\n## Traps that are not the harness's\n\n"
_COLUMNS: Final = " | {} | Ours | Mutation | Tests that fail |\n|---|---|---|---|---|\n"


def page(table: Table) -> str:
    """As it must stand."""
    mine = [rule for rule in table.traps if not rule.elsewhere]
    others = [rule for rule in table.traps if rule.elsewhere]
    return "".join(
        (
            _HEAD,
            "\n## Traps\n\n",
            "| #" + _COLUMNS.format("What happened"),
            *_rows(table, mine),
            _PROMISES,
            "| " + _COLUMNS.format("Promise"),
            *_rows(table, table.promises),
            _ELSEWHERE,
            "| # | What happened | Whose it is |\n|---|---|---|\n",
            *(f"| {rule.name} | {rule.says} | {rule.elsewhere} |\n" for rule in others),
        )
    )


def write(table: Table, path: Path = PAGE) -> None:
    path.write_text(page(table), "utf-8")


def _rows(table: Table, rules: tuple[Rule, ...] | list[Rule]) -> Iterator[str]:
    for rule in rules:
        first = (rule.name, rule.says, rule.ours)
        for mutant in table.of(rule):
            yield f"| {' | '.join((*first, *_cells(mutant)))} |\n"
            first = ("", "", "")


def _cells(mutant: Mutant) -> tuple[str, str]:
    tests = "<br>".join(f"`{test}`" for test in mutant.tests)
    return f"{mutant.does} (`{mutant.file}`)", tests
