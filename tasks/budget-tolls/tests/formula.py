# SPDX-License-Identifier: Apache-2.0
"""The value of a simple formula for given inputs, without a spreadsheet program.

Knows numbers, cells and ranges of the formula's own sheet, + - * / and %, SUM, SUBTOTAL(9, ...),
SUMPRODUCT of one range, and ROUND. Anything else is `Unsupported`: it is not a plain total.
"""

import re
from collections.abc import Callable, Mapping
from itertools import product

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.utils import get_column_letter, range_boundaries

MAX_LENGTH = 300
MAX_CELLS = 1_000
_CELL = r"\$?[A-Z]{1,3}\$?[1-9]\d{0,6}"
_RANGE = re.compile(rf"{_CELL}(?::{_CELL})?", re.IGNORECASE)


class Unsupported(Exception):
    """The formula is broken, or is more than a plain total."""


type Values = list[float]
type Lookup = Callable[[str], float]


def evaluate(formula: str, sheet: str, lookup: Lookup) -> float:
    """The formula's value where `lookup` gives each cell's; raises `Unsupported`."""
    if len(formula) > MAX_LENGTH:
        raise Unsupported("too long")
    try:
        tokens = Tokenizer("".join(formula.split())).items
    except (TokenizerError, IndexError) as cause:  # IndexError: a bracket closed, none open
        raise Unsupported(str(cause)) from cause
    reader = _Reader(tokens, sheet, lookup)
    try:
        value = _one(reader.sum())
    except RecursionError as cause:
        raise Unsupported("nested too deep") from cause
    if reader.left():
        raise Unsupported("more than one expression")
    return value


class _Reader:
    def __init__(self, tokens: list[Token], sheet: str, lookup: Lookup) -> None:
        self._tokens = tokens
        self._sheet = sheet
        self._lookup = lookup
        self._at = 0

    def left(self) -> int:
        return len(self._tokens) - self._at

    def _takes(self, kind: str, *values: str) -> str | None:
        if not self.left():
            return None
        token = self._tokens[self._at]
        if token.type != kind or (values and token.value not in values):
            return None
        self._at += 1
        return str(token.value)

    def sum(self) -> Values:
        value = self._product()
        while sign := self._takes(Token.OP_IN, "+", "-"):
            right = _one(self._product())
            value = [_one(value) + (right if sign == "+" else -right)]
        return value

    def _product(self) -> Values:
        value = self._signed()
        while sign := self._takes(Token.OP_IN, "*", "/"):
            right = _one(self._signed())
            if sign == "/" and right == 0:
                raise Unsupported("division by zero")
            value = [_one(value) * right if sign == "*" else _one(value) / right]
        return value

    def _signed(self) -> Values:
        if sign := self._takes(Token.OP_PRE, "+", "-"):
            value = _one(self._signed())
            return [value if sign == "+" else -value]
        value = self._operand()
        while self._takes(Token.OP_POST, "%"):
            value = [_one(value) / 100]
        return value

    def _operand(self) -> Values:
        if self._takes(Token.PAREN, "("):
            value = self.sum()
            self._close(Token.PAREN)
            return value
        if name := self._takes(Token.FUNC):
            return [_call(name.upper().rstrip("("), self._arguments(name))]
        if text := self._takes(Token.OPERAND):
            return self._value(text)
        raise Unsupported("no operand")

    def _arguments(self, name: str) -> list[Values]:
        if not name.endswith("("):
            raise Unsupported("no operand")
        arguments = [self.sum()]
        while self._takes(Token.SEP, ","):
            arguments.append(self.sum())
        self._close(Token.FUNC)
        return arguments

    def _close(self, kind: str) -> None:
        if not self._takes(kind, ")"):
            raise Unsupported("a bracket is not closed")

    def _value(self, text: str) -> Values:
        if re.fullmatch(r"\d{1,15}(\.\d{1,15})?", text):
            return [float(text)]
        sheet, _, reference = text.rpartition("!")
        if sheet.strip("'") not in ("", self._sheet) or not _RANGE.fullmatch(reference):
            raise Unsupported(text)
        return [self._lookup(cell) for cell in _cells(reference)]


def _cells(reference: str) -> list[str]:
    left, top, right, bottom = range_boundaries(reference.replace("$", "").upper())
    if not 0 < (right - left + 1) * (bottom - top + 1) <= MAX_CELLS:
        raise Unsupported(reference)
    columns, rows = range(left, right + 1), range(top, bottom + 1)
    return [f"{get_column_letter(column)}{row}" for row, column in product(rows, columns)]


def _one(values: Values) -> float:
    if len(values) != 1:
        raise Unsupported("a range where one value belongs")
    return values[0]


def _call(name: str, arguments: list[Values]) -> float:
    if name == "SUBTOTAL" and arguments[0] in ([9.0], [109.0]):
        return sum(sum(values) for values in arguments[1:])
    if name == "SUM" or (name == "SUMPRODUCT" and len(arguments) == 1):
        return sum(sum(values) for values in arguments)
    if name == "ROUND" and len(arguments) == 2 and abs(_one(arguments[1])) <= 9:
        return round(_one(arguments[0]), int(_one(arguments[1])))
    raise Unsupported(name)


def follows(formula: str, sheet: str, cells: Mapping[str, float], others: Lookup) -> float:
    """The formula's value where `cells` hold these numbers and every other cell its own."""
    return evaluate(formula, sheet, lambda cell: cells[cell] if cell in cells else others(cell))
