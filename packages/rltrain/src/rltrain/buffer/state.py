# SPDX-License-Identifier: Apache-2.0
"""A book as plain data, and read again.

Contract: what is read is what was written, so that a scheduler goes on as if it had not stopped. It
is part of a checkpoint, whose version of this form it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from rltrain.buffer.book import Book
from rltrain.refused import Refused

FORM: Final = 1
"""Of the data; another one has other fields."""


def plain(book: Book) -> dict[str, Any]:
    """As JSON has it."""
    return {"form": FORM, "book": _adapter().dump_python(book, mode="json")}


def read(state: Mapping[str, Any]) -> Book:
    """The book.

    Raises:
        Refused: it is of another form.
    """
    if state.get("form") != FORM:
        raise Refused(
            f"scheduler state: it has form {state.get('form')!r}, and this rltrain reads {FORM};"
            " resume with the rltrain that wrote it"
        )
    try:
        return _adapter().validate_python(state.get("book"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise Refused(
            f"scheduler state: {place}: {first['msg']}; take another checkpoint"
        ) from error


@cache
def _adapter() -> TypeAdapter[Book]:
    return TypeAdapter(Book)
