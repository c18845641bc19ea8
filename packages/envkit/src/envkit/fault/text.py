# SPDX-License-Identifier: Apache-2.0
"""The chain of exceptions, read from traceback text.

A live exception is formatted first and then read, so a live exception and Harbor's stored record
of it (``exception_type``, ``exception_message``, ``exception_traceback``) cannot be told apart and
cannot be answered differently. The class and message of the outermost exception are taken from
the record, not searched for in the text, so no message can pass itself off as another class.

Grammar: CPython's ``traceback`` module. Blocks oldest first, joined by one of two sentences;
members of an exception group stand behind a bar, indented, between ``+-+--- 1 ---`` and ``+---``.
"""

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, groupby

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_HEADERS = (
    "Traceback (most recent call last):",
    "Exception Group Traceback (most recent call last):",
)
_CLASS = re.compile(r"(?P<path>[^\W\d][\w.<>]*)(?:: (?P<message>.*))?$", re.DOTALL)
_MEMBER = re.compile(r"\+-+ (?:\d+|\.\.\.) -+$")

type Chain = tuple["Link", ...]
"""An exception and what it came from, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One exception of a chain."""

    path: str
    """Dotted class as a traceback prints it, without ``builtins`` and ``__main__``."""
    message: str
    explicit: bool = True
    """Reached by ``raise … from`` all the way down, not merely while something was handled."""
    located: bool = True
    """The path holds the module; false where a record has a bare class name only."""
    members: tuple[Chain, ...] = ()
    """The chains inside an exception group, at most the 15 a traceback prints."""

    @property
    def name(self) -> str:
        """The bare class name."""
        return self.path.rpartition(".")[2]


type _Part = str | tuple[Chain, ...]
"""A line of one block, or the members of its exception group."""


def describe(error: BaseException) -> dict[str, str]:
    """The same three facts of a live exception that Harbor stores of one."""
    return {
        "exception_type": type(error).__name__,
        "exception_message": message_of(error),
        "exception_traceback": "".join(traceback.format_exception(error)),
    }


def message_of(error: BaseException) -> str:
    """``str(error)``, also for a class whose ``__str__`` fails."""
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"


def read_chain(record: Mapping[str, object]) -> Chain:
    """The chain of a stored record; never empty, whatever the text is."""
    name = str(record.get("exception_type") or "")
    message = str(record.get("exception_message") or "")
    text = str(record.get("exception_traceback") or "")
    found = _outermost(text, name, message)
    if found is not None:
        start, path = found
        beneath = _links(_parts(text[:start].split("\n")))[1:]
        return (Link(path=path, message=message), *beneath)
    chain = _links(_parts(text.strip("\n").split("\n")))
    if chain[0].name == name:
        return (replace(chain[0], message=message), *chain[1:])
    return (Link(path=name, message=message, located=False),)


def _outermost(text: str, name: str, message: str) -> tuple[int, str] | None:
    """Where the outermost exception's own line starts, and its dotted class."""
    if not name:
        return None
    tail = re.escape(f": {message}" if message else "")
    pattern = re.compile(rf"^(?P<path>(?:[\w.<>]+\.)?{re.escape(name)}){tail}$", re.MULTILINE)
    found = [(match.start(), match["path"]) for match in pattern.finditer(text)]
    return found[-1] if found else None


def _parts(lines: Sequence[str]) -> Iterator[_Part]:
    """The parts of top-level text: groups stand behind a bar there, everything else does not."""
    block: list[str] = []
    for line in lines:
        if line in (_CAUSE, _CONTEXT):
            yield from _block_parts(block)
            yield line
            block = []
        else:
            block.append(line)
    yield from _block_parts(block)


def _block_parts(block: list[str]) -> Iterator[_Part]:
    start = 1 if block and not block[0] else 0
    if block[start:] and block[start].startswith(("  + Exception Group", "  | ")):
        return _barred([line[2:].replace("+ ", "| ", 1) for line in block[start:]])
    return iter(block[start:])


def _barred(lines: Sequence[str]) -> Iterator[_Part]:
    """The text behind this level's bar, and the members of each group among it.

    What is indented further is a group's; CPython closes several levels with one line, or none.
    """
    for is_group, block in groupby(lines, key=lambda line: line.startswith("  ")):
        if is_group:
            yield _members([line[2:] for line in block])
        else:
            yield from (line[2:] for line in block if line.startswith("|"))


def _members(lines: Sequence[str]) -> tuple[Chain, ...]:
    members: list[list[str]] = [[]]
    for line in lines:
        if _MEMBER.match(line):
            members.append([])
        else:
            members[-1].append(line)
    return tuple(_links(_barred(member)) for member in members)


def _links(parts: Iterator[_Part]) -> Chain:
    """The links among parts, which come oldest first; the chain is outermost first."""
    links: list[Link] = []
    explicit = True
    block: list[_Part] = []
    for part in reversed(list(parts)):
        if part in (_CAUSE, _CONTEXT):
            links.append(_link(block[::-1], explicit=explicit))
            explicit = explicit and part == _CAUSE
            block = []
        else:
            block.append(part)
    return (*links, _link(block[::-1], explicit=explicit))


def _link(block: Sequence[_Part], *, explicit: bool) -> Link:
    lines = [part for part in block if isinstance(part, str)]
    members = next((part for part in block if isinstance(part, tuple)), ())
    own = list(dropwhile(lambda line: line in _HEADERS or line.startswith("  ") or not line, lines))
    found = _CLASS.match("\n".join(own).strip("\n"))
    if found is None:
        return Link(path="", message="\n".join(own), explicit=explicit, members=members)
    message = found["message"] or ""
    return Link(path=found["path"], message=message, explicit=explicit, members=members)
