# SPDX-License-Identifier: Apache-2.0
"""The traps, what we promise beside them, and the mutations of our code that must fail a test.

Contract: `mutants.toml` is the one source; what does not hold together in it raises ValueError.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parents[2]
TABLE: Final = Path(__file__).with_name("mutants.toml")
SOURCE: Final = "packages/envkit/src/envkit"
TESTS: Final = "packages/envkit/tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Something that must not happen here."""

    name: str
    """A trap's number, or a promise in a word."""
    says: str
    """What happened elsewhere, or what is promised."""
    ours: str = ""
    """What we do instead."""
    elsewhere: str = ""
    """Of a trap that is none of the harness's: why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of our code that brings the trap back."""

    of: str
    """Its rule."""
    does: str
    file: str
    """Under `SOURCE`."""
    old: str
    """Stands in the file exactly once."""
    new: str
    tests: tuple[str, ...]
    """Under `TESTS`; each must fail by an assertion."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The tests, as pytest names them."""
        return tuple(f"{TESTS}/{test}" for test in self.tests)

    def problem(self, root: Path) -> str:
        """Why it cannot be applied to a tree; empty where it can."""
        path = root / SOURCE / self.file
        if not path.is_file():
            return f"there is no {SOURCE}/{self.file}"
        count = path.read_text("utf-8").count(self.old)
        return "" if count == 1 else f"its old text stands {count} times in {SOURCE}/{self.file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All of them, in the order of the file."""

    traps: tuple[Rule, ...]
    promises: tuple[Rule, ...]
    mutants: tuple[Mutant, ...]

    @classmethod
    def read(cls, path: Path = TABLE) -> Self:
        """Raises ValueError where a rule that is ours has no mutant, or a mutant no rule."""
        raw: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        table = cls(
            traps=tuple(Rule(**each) for each in raw.get("trap", ())),
            promises=tuple(Rule(**each) for each in raw.get("promise", ())),
            mutants=tuple(_mutant(**each) for each in raw["mutant"]),
        )
        table._check()
        return table

    def of(self, rule: Rule) -> tuple[Mutant, ...]:
        """A rule's mutants."""
        return tuple(each for each in self.mutants if each.of == rule.name)

    def _check(self) -> None:
        rules = (*self.traps, *self.promises)
        names = [each.name for each in rules]
        if len(names) != len(set(names)):
            raise ValueError("two rules have one name")
        if lost := {each.of for each in self.mutants} - {*names}:
            raise ValueError(f"no rule is named {', '.join(sorted(lost))}")
        for rule in rules:
            if bool(rule.elsewhere) == bool(self.of(rule)):
                raise ValueError(f"{rule.name}: a rule has mutants, or says whose it is: not both")
        for mutant in self.mutants:
            if mutant.old == mutant.new or not mutant.tests:
                raise ValueError(f"{mutant.of}: {mutant.does!r} changes nothing or fails no test")


def _mutant(*, tests: list[str], **texts: str) -> Mutant:
    return Mutant(tests=tuple(tests), **texts)
