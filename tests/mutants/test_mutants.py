# SPDX-License-Identifier: Apache-2.0
"""The table of mutants holds together, and only a test's own assertion kills one."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from .hunt import Found, hunt
from .page import PAGE, page
from .run import main
from .table import ROOT, SOURCE, TESTS, Mutant, Rule, Table

TABLE = Table.read()
CALC = """\
def add(one, other):
    return one + other


def half(one):
    return one / 2
"""
TEST_CALC = """\
import time

import pytest

from envkit.calc import add, half


@pytest.fixture
def three():
    return add(1, 2) // (add(1, 2) == 3)


def test_sums():
    assert add(1, 2) == 3


@pytest.mark.parametrize("one", [0, 2])
def test_halves(one):
    assert half(one) == one / 2


def test_refuses_text():
    with pytest.raises(TypeError):
        half("2")


def test_with_a_fixture(three):
    assert three == 3


def test_that_is_skipped():
    pytest.skip("not here")


def test_that_always_fails():
    assert add(1, 2) == 4
"""
SUM = Mutant(
    of="sum",
    does="adds one more",
    file="calc.py",
    old="one + other",
    new="one + other + 1",
    tests=("test_calc.py::test_sums",),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of one module."""
    root = tmp_path_factory.mktemp("tree")
    for path, text in {
        f"{SOURCE}/__init__.py": "",
        f"{SOURCE}/calc.py": CALC,
        f"{TESTS}/test_calc.py": TEST_CALC,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n',
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


def files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def found(tree: Path, *mutants: Mutant) -> list[Found]:
    return list(hunt(tree, mutants))


def test_a_mutant_that_a_test_sees_is_killed_and_the_tree_is_only_read(tree: Path) -> None:
    before = files(tree)
    tests = ("test_calc.py::test_halves", "test_calc.py::test_halves[2]")
    one_case = replace(SUM, old="one / 2", new="one / 2 + (one == 2)", tests=tests)
    raises = replace(SUM, old="one / 2", new="one", tests=("test_calc.py::test_refuses_text",))
    assert [each.wrong for each in found(tree, SUM, one_case, raises)] == ["", "", ""]
    assert files(tree) == before


ALIVE = {
    "not seen": (replace(SUM, new="other + one"), "test_sums on the mutant: passed"),
    "raises": (replace(SUM, new="one + nothing"), "test_sums on the mutant: NameError"),
    "no module": (
        replace(SUM, old="def add", new="import nothing\n\n\ndef add"),
        "test_sums was not run on the mutant",
    ),
    "no Python": (replace(SUM, new="one +"), "test_sums was not run on the mutant"),
    "breaks a fixture": (
        replace(SUM, tests=("test_calc.py::test_with_a_fixture",)),
        "test_with_a_fixture on the mutant: ZeroDivisionError in setup",
    ),
    "old text is gone": (replace(SUM, old="one - other"), "stands 0 times"),
    "old text stands twice": (replace(SUM, old="one"), "its old text stands 4 times"),
    "no file": (replace(SUM, file="clac.py"), "there is no packages/envkit/src/envkit/clac.py"),
    "skipped": (
        replace(SUM, tests=("test_calc.py::test_that_is_skipped",)),
        "test_that_is_skipped as the code is: skipped",
    ),
    "fails anyway": (
        replace(SUM, tests=("test_calc.py::test_that_always_fails",)),
        "test_that_always_fails as the code is: assertion",
    ),
    "one of two tests": (
        replace(SUM, tests=("test_calc.py::test_sums", "test_calc.py::test_halves")),
        "test_halves on the mutant: passed",
    ),
}


@pytest.fixture(scope="module")
def alive(tree: Path) -> dict[str, str]:
    """What is said of each of them."""
    hunted = hunt(tree, [mutant for mutant, _ in ALIVE.values()])
    return {name: each.wrong for name, each in zip(ALIVE, hunted, strict=True)}


@pytest.mark.parametrize("name", ALIVE)
def test_whatever_is_no_failed_assertion_leaves_a_mutant_alive(
    alive: dict[str, str], name: str
) -> None:
    assert ALIVE[name][1] in alive[name]


def test_a_test_that_is_not_there_kills_nothing(tree: Path) -> None:
    (it,) = found(tree, replace(SUM, tests=("test_calc.py::test_sum",)))
    assert "test_sum was not run as the code is" in it.wrong


def test_a_mutant_alive_fails_the_session(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(traps=(Rule(name="sum", says="x"),), promises=(), mutants=(SUM,))
    assert main([], table, tree) == 0
    said = capsys.readouterr().out.splitlines()
    assert "killed" in said[0]
    assert said[1].split() == ["test_calc.py::test_sums"]
    assert "assert 4 == 3" in said[2]
    assert said[-1].startswith("1 killed, 0 alive, ")
    assert main([], replace(table, mutants=(SUM, ALIVE["not seen"][0])), tree) == 1
    assert "ALIVE" in capsys.readouterr().out
    assert main(["product"], table, tree) == 2
    assert "there is no product; there are sum" in capsys.readouterr().err


def test_every_trap_has_mutants_or_says_whose_it_is() -> None:
    assert [each.name for each in TABLE.traps] == [str(n) for n in range(1, 17)]
    assert [each.name for each in TABLE.traps if each.elsewhere] == ["9", "12", "13", "14"]


@pytest.mark.parametrize("mutant", TABLE.mutants, ids=lambda each: f"{each.of}: {each.does}")
def test_every_mutant_applies_to_the_code_as_it_is_and_leaves_it_python(mutant: Mutant) -> None:
    assert mutant.problem(ROOT) == ""
    text = (ROOT / SOURCE / mutant.file).read_text("utf-8")
    ast.parse(text.replace(mutant.old, mutant.new))


@pytest.mark.parametrize("node", sorted({node for each in TABLE.mutants for node in each.nodes}))
def test_every_test_of_the_table_is_there(node: str) -> None:
    path, _, name = node.partition("::")
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    names = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    assert name.partition("[")[0] in names


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(TABLE), "python -m nox -s mutants -- --page"
