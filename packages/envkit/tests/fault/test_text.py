# SPDX-License-Identifier: Apache-2.0
"""The chain read from traceback text is the chain that the exceptions themselves hold."""

import keyword
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.deadline import DeadlineExceeded
from envkit.fault import OutOfMemory, SandboxDied
from envkit.fault.text import describe, read_chain

_WIDTH = 15
"""Members of a group that CPython prints."""

type Shape = tuple[str, bool, tuple["Shapes", ...]]
type Shapes = tuple[Shape, ...]

_SENTENCES = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)


def held(error: BaseException) -> Shapes:
    """The chain by the exceptions' own attributes."""
    links: list[Shape] = []
    at: BaseException | None = error
    explicit = True
    while at is not None:
        cls, members = type(at), getattr(at, "exceptions", ())
        path = (
            cls.__qualname__
            if cls.__module__ == "builtins"
            else f"{cls.__module__}.{cls.__qualname__}"
        )
        links.append((path, explicit, tuple(held(member) for member in members[:_WIDTH])))
        cause, suppressed = at.__cause__, at.__suppress_context__
        explicit = explicit and cause is not None
        at = cause if cause is not None else (None if suppressed else at.__context__)
    return tuple(links)


def read(error: BaseException) -> Shapes:
    """The same by the text."""

    def shapes(chain: object) -> Shapes:
        return tuple(
            (link.path, link.explicit, tuple(shapes(member) for member in link.members))
            for link in chain  # type: ignore[attr-defined]
        )

    return shapes(read_chain(describe(error)))


_any_text = st.text(max_size=40) | st.sampled_from(
    [*_SENTENCES, "Traceback (most recent call last):"]
)
_messages = st.lists(_any_text, max_size=4).map("\n".join)
_quiet = _messages.filter(lambda text: not any(line in text.split("\n") for line in _SENTENCES))
_classes: list[Callable[[str], Exception]] = [
    ValueError,
    RuntimeError,
    ConnectionResetError,
    SandboxDied,
    OutOfMemory,
    lambda text: DeadlineExceeded("exec", 3.0),
    type("Boom", (Exception,), {"__module__": "lib.errors"}),
    type("Inner", (Exception,), {"__qualname__": "make.<locals>.Inner", "__module__": "lib"}),
]
_leaves = st.builds(lambda make, text: make(text), st.sampled_from(_classes), _quiet)
_kinds = st.sampled_from(["cause", "context", "hidden"])


def _raise(outer: Exception, inner: Exception, kind: str) -> Exception:
    try:
        try:
            raise inner
        except Exception as caught:
            if kind == "context":
                raise outer  # noqa: B904 - what was being handled is the point
            raise outer from (caught if kind == "cause" else None)
    except Exception as caught:
        return caught


def _grow(inner: st.SearchStrategy[Exception]) -> st.SearchStrategy[Exception]:
    chained = st.builds(_raise, _leaves, inner, _kinds)
    names = st.text(alphabet="abc \n", min_size=1, max_size=12)
    grouped = st.builds(ExceptionGroup, names, st.lists(inner, min_size=1, max_size=4))
    return chained | grouped


_trees = st.recursive(_leaves, _grow, max_leaves=8)


@given(_trees)
@settings(max_examples=300, deadline=None)
def test_the_text_holds_the_chain_the_exceptions_hold(error: Exception) -> None:
    assert read(error) == held(error)


@given(_messages, _leaves, _kinds)
@settings(max_examples=300, deadline=None)
def test_whatever_the_outermost_message_says_it_adds_no_link(
    message: str, inner: Exception, kind: str
) -> None:
    error = _raise(RuntimeError(message), inner, kind)
    assert read(error) == held(error)
    assert read_chain(describe(error))[0].message == message


def test_more_members_than_are_printed_leave_one_that_nobody_knows() -> None:
    error = ExceptionGroup("many", [ValueError(str(number)) for number in range(40)])
    (link,) = read_chain(describe(error))
    assert len(link.members) == _WIDTH + 1
    assert link.members[-1][0].path == ""


def test_a_group_of_groups_beneath_a_member_is_closed_by_what_follows_it() -> None:
    """CPython prints one closing line for two levels here, and none at the very end."""
    beneath = ExceptionGroup("a", [ExceptionGroup("b", [ValueError("c")])])
    member = _raise(KeyError("d"), beneath, "context")
    for members in ([member], [member, OSError("e")], [OSError("e"), member]):
        error = ExceptionGroup("f", members)
        assert read(error) == held(error)


def test_a_syntax_error_and_a_note_do_not_confuse_the_reader() -> None:
    with pytest.raises(SyntaxError) as caught:
        compile("a b", "made up", "exec")
    caught.value.add_note("RuntimeError: not me")
    assert read(caught.value) == held(caught.value)


def test_keywords_are_not_classes() -> None:
    chain = read_chain({"exception_type": keyword.kwlist[0], "exception_traceback": "garbage: x y"})
    assert [link.path for link in chain] == [keyword.kwlist[0]]
