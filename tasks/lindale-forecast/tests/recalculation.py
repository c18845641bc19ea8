# SPDX-License-Identifier: Apache-2.0
"""The values of a workbook's formulas for given inputs, without a spreadsheet program.

Knows numbers, cells, ranges and names of any sheet, + - * / % and brackets, SUM, SUMPRODUCT and
ROUND. Anything else is `Unsupported`: it is no plain sum or reference.
"""

import math
import re
from collections.abc import Mapping
from itertools import product
from typing import Any

MAX_LENGTH = 300
MAX_DEPTH = 40
MAX_CELLS = 1_000

_CELL = r"\$?[A-Z]{1,3}\$?[1-9]\d{0,6}"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,15}(?:\.\d{1,15})?)(?![\w.])"
    r"|(?P<call>[A-Z]+)\("
    rf"|(?P<range>(?:(?:'[^'!]+'|[A-Z]\w*)!)?{_CELL}(?::{_CELL})?)(?![\w(!])"
    r"|(?P<name>[A-Z_]\w*)"
    r"|(?P<sign>[-+*/%(),]))",
    re.IGNORECASE,
)

type Values = list[float]


class Unsupported(Exception):
    """The formula is broken, or is more than a plain sum or reference."""


class Recalculation:
    """The cells of a workbook, with `inputs` in place of what some of them hold."""

    def __init__(self, found: Mapping[str, Any], inputs: Mapping[tuple[str, str], float]) -> None:
        self._sheets = {name.upper(): sheet["cells"] for name, sheet in found["sheets"].items()}
        self._names = {name.upper(): target for name, target in found["names"].items()}
        self._known = {(sheet.upper(), cell): value for (sheet, cell), value in inputs.items()}
        self._depth = 0

    def cell(self, sheet: str, name: str) -> float:
        """The cell's number, an empty one being nothing; raises `Unsupported`."""
        key = (sheet.upper(), name)
        if key in self._known:
            return self._known[key]
        if key[0] not in self._sheets or self._depth > MAX_DEPTH:
            raise Unsupported(f"{sheet}!{name}")
        content = self._sheets[key[0]].get(name, [0.0])[0]
        if isinstance(content, str) and content.startswith("="):
            self._depth += 1
            content = _Reader(content[1:], key[0], self).value()
            self._depth -= 1
        if isinstance(content, bool) or not isinstance(content, int | float):
            raise Unsupported(f"{sheet}!{name} holds no number")
        self._known[key] = float(content)
        return self._known[key]

    def range(self, text: str, sheet: str) -> Values:
        """The numbers of a range; text in it counts as nothing."""
        place, _, reference = text.rpartition("!")
        first, _, last = reference.replace("$", "").upper().partition(":")
        cells = _cells(first, last or first)
        return [self.cell(place.strip("'") or sheet, cell) for cell in cells]

    def named(self, name: str) -> Values:
        """The numbers that a name of the workbook stands for."""
        target = self._names.get(name.upper(), "")
        if not re.fullmatch(rf".+!{_CELL}(:{_CELL})?", target, re.IGNORECASE):
            raise Unsupported(name)
        return self.range(target, "")


def _cells(first: str, last: str) -> list[str]:
    (left, top), (right, bottom) = (_place(cell) for cell in (first, last))
    if not 0 < (right - left + 1) * (bottom - top + 1) <= MAX_CELLS:
        raise Unsupported(f"{first}:{last}")
    places = product(range(top, bottom + 1), range(left, right + 1))
    return [f"{_letters(column)}{row}" for row, column in places]


def _place(cell: str) -> tuple[int, int]:
    found = re.fullmatch(r"([A-Z]+)(\d+)", cell)
    assert found is not None
    column = 0
    for letter in found[1]:
        column = 26 * column + ord(letter) - 64
    return column, int(found[2])


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


class _Reader:
    def __init__(self, formula: str, sheet: str, cells: Recalculation) -> None:
        if len(formula) > MAX_LENGTH:
            raise Unsupported("too long")
        self._tokens = _tokens(formula)
        self._sheet, self._cells, self._depth = sheet, cells, 0

    def value(self) -> float:
        found = _one(self._sum())
        if self._tokens:
            raise Unsupported("more than one expression")
        return found

    def _takes(self, kind: str, *texts: str) -> str | None:
        if not self._tokens or self._tokens[0][0] != kind:
            return None
        if texts and self._tokens[0][1] not in texts:
            return None
        return self._tokens.pop(0)[1]

    def _sum(self) -> Values:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unsupported("nested too deep")
        found = self._product()
        while sign := self._takes("sign", "+", "-"):
            right = _one(self._product())
            found = [_one(found) + (right if sign == "+" else -right)]
        self._depth -= 1
        return found

    def _product(self) -> Values:
        found = self._signed()
        while sign := self._takes("sign", "*", "/"):
            right = _one(self._signed())
            if sign == "/" and right == 0:
                raise Unsupported("divides by zero")
            found = [_one(found) * (right if sign == "*" else 1 / right)]
        return found

    def _signed(self) -> Values:
        minus = False
        signed = False
        while sign := self._takes("sign", "+", "-"):
            signed, minus = True, minus != (sign == "-")
        found = self._operand()
        while self._takes("sign", "%"):
            found = [_one(found) / 100]
        return [-_one(found) if minus else _one(found)] if signed else found

    def _operand(self) -> Values:
        if self._takes("sign", "("):
            found = self._sum()
            self._closes()
            return found
        if text := self._takes("number"):
            return [float(text)]
        if text := self._takes("range"):
            return self._cells.range(text, self._sheet)
        if text := self._takes("name"):
            return self._cells.named(text)
        if name := self._takes("call"):
            return [_call(name.upper(), self._arguments())]
        raise Unsupported("no operand")

    def _arguments(self) -> list[Values]:
        found = [self._sum()]
        while self._takes("sign", ","):
            found.append(self._sum())
        self._closes()
        return found

    def _closes(self) -> None:
        if not self._takes("sign", ")"):
            raise Unsupported("a bracket is not closed")


def _tokens(formula: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, text = 0, formula.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise Unsupported(text[at : at + 20])
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _one(values: Values) -> float:
    if len(values) != 1 or not math.isfinite(values[0]):
        raise Unsupported("no single number")
    return values[0]


def _call(name: str, arguments: list[Values]) -> float:
    if name == "SUM":
        return sum(sum(values) for values in arguments)
    if name == "SUMPRODUCT" and len({len(values) for values in arguments}) == 1:
        return sum(math.prod(row) for row in zip(*arguments, strict=True))
    if name == "ROUND" and len(arguments) == 2 and 0 <= _one(arguments[1]) <= 9:
        return round(_one(arguments[0]), int(_one(arguments[1])))
    raise Unsupported(name)
