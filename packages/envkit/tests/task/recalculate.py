# SPDX-License-Identifier: Apache-2.0
"""The values of a workbook's formulas, worked out anew from their text and the typed cells.

An independent reading for tests: it knows operators, references across sheets, names, and the
functions in `_FUNCTIONS`; what it does not know raises `NotImplementedError`, so that no formula
goes unchecked.
"""

import operator
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from openpyxl import Workbook
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token

type Value = Any
"""A number, text, date or None; for a range, its rows."""

_ORDER = (("=", "<>", "<", ">", "<=", ">="), ("&",), ("+", "-"), ("*", "/"), ("^",))
_OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le,
    ">=": operator.ge, "&": lambda a, b: f"{a}{b}", "+": lambda a, b: (a or 0) + (b or 0),
    "-": lambda a, b: (a or 0) - (b or 0), "*": lambda a, b: (a or 0) * (b or 0),
    "/": lambda a, b: (a or 0) / b, "^": operator.pow,
}  # fmt: skip


def recalculate(book: Workbook) -> dict[tuple[str, str], Value]:
    """(sheet, cell) -> value, for every formula of a workbook that was loaded with formulas."""

    @cache
    def cell(sheet: str, name: str) -> Value:
        content = book[sheet][name].value
        if isinstance(content, str) and content.startswith("="):
            return _Reader(content, sheet, cell, book).value()
        return content

    return {
        (sheet.title, found.coordinate): cell(sheet.title, found.coordinate)
        for sheet in book.worksheets
        for row in sheet.iter_rows()
        for found in row
        if isinstance(found.value, str) and found.value.startswith("=")
    }


class _Reader:
    def __init__(
        self, formula: str, sheet: str, cell: Callable[[str, str], Value], book: Workbook
    ) -> None:
        self._tokens = [token for token in Tokenizer(formula).items if token.type != Token.WSPACE]
        self._sheet, self._cell, self._book = sheet, cell, book

    def value(self) -> Value:
        found = self._level(0)
        assert not self._tokens, f"left over: {[token.value for token in self._tokens]}"
        return found

    def _takes(self, kind: str, *values: str) -> str | None:
        token = self._tokens[0] if self._tokens else None
        if token is None or token.type != kind or (values and token.value not in values):
            return None
        return str(self._tokens.pop(0).value)

    def _level(self, level: int) -> Value:
        if level == len(_ORDER):
            return self._signed()
        left = self._level(level + 1)
        while sign := self._takes(Token.OP_IN, *_ORDER[level]):
            left = _OPERATORS[sign](left, self._level(level + 1))
        return left

    def _signed(self) -> Value:
        if sign := self._takes(Token.OP_PRE):
            return -self._signed() if sign == "-" else self._signed()
        found = self._operand()
        while self._takes(Token.OP_POST):
            found /= 100
        return found

    def _operand(self) -> Value:
        if self._takes(Token.PAREN, "("):
            found = self._level(0)
            assert self._takes(Token.PAREN, ")")
            return found
        if name := self._takes(Token.FUNC):
            return self._call(name)
        token = self._tokens.pop(0)
        if token.subtype == Token.NUMBER:
            return float(token.value)
        if token.subtype == Token.TEXT:
            return token.value[1:-1].replace('""', '"')
        if token.subtype == Token.RANGE:
            return self._range(token.value, self._sheet)
        raise NotImplementedError(token.value)

    def _call(self, name: str) -> Value:
        arguments: list[Value] = []
        while not self._takes(Token.FUNC, ")"):
            self._takes(Token.SEP, ",")
            arguments.append(self._level(0))
        function = _FUNCTIONS.get(name.rstrip("("))
        if function is None:
            raise NotImplementedError(name)
        return function(*arguments)

    def _range(self, text: str, sheet: str) -> Value:
        place, _, reference = text.rpartition("!")
        sheet, reference = place.strip("'") or sheet, reference.replace("$", "")
        if re.fullmatch(r"[A-Z]{1,3}\d+", reference):
            return self._cell(sheet, reference)
        if re.fullmatch(r"[A-Z]{1,3}\d+:[A-Z]{1,3}\d+", reference):
            rows = self._book[sheet][reference]
            return [[self._cell(sheet, found.coordinate) for found in row] for row in rows]
        return self._range(self._book.defined_names[reference].attr_text, sheet)


def _flat(*arguments: Value) -> list[Value]:
    found: list[Value] = []
    for argument in arguments:
        found += _flat(*argument) if isinstance(argument, list) else [argument]
    return found


def _numbers(*arguments: Value) -> list[float]:
    return [value for value in _flat(*arguments) if isinstance(value, int | float)]


def _meets(value: Value, wanted: Value) -> bool:
    found = re.match(r"(<=|>=|<>|<|>|=)(.*)", str(wanted)) if isinstance(wanted, str) else None
    if found:
        return value is not None and bool(_OPERATORS[found[1]](value, float(found[2])))
    return value == wanted


def _rows_that_meet(*pairs: Value) -> list[bool]:
    columns = [_flat(column) for column in pairs[::2]]
    return [
        all(_meets(value, wanted) for value, wanted in zip(row, pairs[1::2], strict=True))
        for row in zip(*columns, strict=True)
    ]


def _sumifs(summed: Value, *pairs: Value) -> float:
    rows = zip(_flat(summed), _rows_that_meet(*pairs), strict=True)
    return sum(value or 0 for value, holds in rows if holds)


def _match(wanted: Value, cells: Value, kind: float) -> int:
    assert kind == 0
    return _flat(cells).index(wanted) + 1


def _index(rows: Value, row: float, column: float | None = None) -> Value:
    if column is None:
        return _flat(rows)[int(row) - 1]
    return rows[int(row) - 1][int(column) - 1]


def _vlookup(wanted: Value, rows: Value, column: float, kind: float) -> Value:
    assert kind == 0
    return next(row[int(column) - 1] for row in rows if row[0] == wanted)


def _sumproduct(*columns: Value) -> float:
    total = 0.0
    for values in zip(*(_flat(column) for column in columns), strict=True):
        product = 1.0
        for value in values:
            product *= value or 0
        total += product
    return total


def _round(value: float, places: float) -> float:
    scaled = abs(value) * 10**places
    return (1 if value >= 0 else -1) * int(scaled + 0.5 + 1e-9) / 10**places


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "SUM": lambda *values: sum(_numbers(*values)),
    "MAX": lambda *values: max(_numbers(*values)),
    "MIN": lambda *values: min(_numbers(*values)),
    "AVERAGE": lambda *values: sum(_numbers(*values)) / len(_numbers(*values)),
    "ABS": abs,
    "ROUND": _round,
    "IF": lambda test, then, other: then if test else other,
    "SUMIFS": _sumifs,
    "COUNTIFS": lambda *pairs: sum(_rows_that_meet(*pairs)),
    "COUNTIF": lambda *pairs: sum(_rows_that_meet(*pairs)),
    "SUMPRODUCT": _sumproduct,
    "MATCH": _match,
    "INDEX": _index,
    "VLOOKUP": _vlookup,
}
