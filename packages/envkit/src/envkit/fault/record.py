# SPDX-License-Identifier: Apache-2.0
"""Exceptions as JSON and back, for process boundaries where pickles do not go.

A record has Harbor's three keys, so `classify` reads it as it reads Harbor's own, and the dotted
class and arguments besides, from which `from_record` builds envkit's own errors anew.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from envkit.fault.errors import EnvkitError, ForeignError
from envkit.fault.text import describe

_SCALARS = (str, int, float, bool, type(None))


def to_record(error: BaseException) -> dict[str, object]:
    """A JSON-ready record of an exception, its traceback and its causes as text."""
    args = [arg if isinstance(arg, _SCALARS) else str(arg) for arg in error.args]
    return {**describe(error), "class": _path(type(error)), "args": args}


def from_record(record: Mapping[str, object]) -> EnvkitError:
    """The error again, with its class and arguments; causes stay behind as text in the record.

    An error of somebody else's class becomes a `ForeignError`, which is classified as what it
    stands for. No code is imported and no foreign class is built for a record's sake.
    """
    path = str(record.get("class") or record.get("exception_type") or "")
    cls = next((each for each in _tree(EnvkitError) if _path(each) == path), None)
    if cls is None:
        return ForeignError(f"{path}: {record.get('exception_message', '')}")
    args = record.get("args")
    return cls(*cast("list[object]", args) if isinstance(args, list) else ())


def _tree(cls: type[EnvkitError]) -> Iterator[type[EnvkitError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
