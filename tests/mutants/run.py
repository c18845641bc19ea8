# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.mutants.run [RULE ...] [--page]``: what ``nox -s mutants`` runs.

Exits 0 where every mutant was killed, 1 where one is alive, 2 where a rule is not known.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .hunt import Found, hunt
from .page import write
from .table import ROOT, Mutant, Table


def main(words: Sequence[str], table: Table, root: Path = ROOT) -> int:
    """Print a line for each mutant, and say how many live."""
    parser = argparse.ArgumentParser(prog="mutants", description="Break our code; see tests fail.")
    parser.add_argument("rules", nargs="*", metavar="RULE", help="a trap's number or a promise")
    parser.add_argument("--page", action="store_true", help="write docs/traps.md anew, no more")
    asked = parser.parse_args(words)
    if asked.page:
        write(table)
        return 0
    names = [rule.name for rule in (*table.traps, *table.promises)]
    if unknown := sorted({*asked.rules} - {*names}):
        print(f"there is no {unknown[0]}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    return _hunted([each for each in table.mutants if each.of in (asked.rules or names)], root)


def _hunted(mutants: Sequence[Mutant], root: Path) -> int:
    began, alive = time.monotonic(), 0
    for found in hunt(root, mutants):
        alive += bool(found.wrong)
        print(_line(found), flush=True)
    seconds = time.monotonic() - began
    print(f"{len(mutants) - alive} killed, {alive} alive, {seconds:.1f} s", flush=True)
    return 1 if alive else 0


def _line(found: Found) -> str:
    mutant = found.mutant
    verdict = "ALIVE " if found.wrong else "killed"
    line = f"{mutant.of:<12} {verdict} {found.seconds:6.1f} s  {mutant.does} ({mutant.file})"
    indent = f"\n{'':24}"
    if found.wrong:
        return f"{line}{indent}{found.wrong}"
    killers = zip(mutant.tests, found.by, strict=True)
    return line + "".join(f"{indent}{test}{indent}  {why}" for test, why in killers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Table.read()))
