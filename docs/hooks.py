# SPDX-License-Identifier: Apache-2.0
"""Tables of the documentation that are read from the code, so that they cannot go stale.

A page says ``<!-- table: NAME -->``; the build puts the table of that name there, and fails on a
name that does not exist.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator

from envkit import deadline, fault
from envkit.preflight.chaos import expected

PLACE = re.compile(r"<!-- table: (\w+) -->")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def yes(fact: bool) -> str:
    return "yes" if fact else "no"


def family(
    root: type[fault.EnvkitError], depth: int = 0
) -> Iterator[tuple[int, type[fault.EnvkitError]]]:
    """An error class and its descendants, in the order they are written."""
    yield depth, root
    for child in root.__subclasses__():
        yield from family(child, depth + 1)


def faults() -> str:
    """Every error of envkit with its owner and its policy."""
    head = ("error", "owner", "retry", "grade", "reward valid", "when")
    rows = (
        (
            f"{'&emsp;' * depth}`{error.__name__}`",
            "the operation's" if error is deadline.DeadlineExceeded else error.owner,
            yes(error.policy.retry),
            yes(error.policy.grade),
            yes(error.policy.reward_valid),
            (inspect.getdoc(error) or "").split("\n\n")[0].replace("\n", " "),
        )
        for depth, error in family(fault.EnvkitError)
    )
    return table(head, rows)


def documented_fields(record: type) -> Iterator[tuple[str, str]]:
    """(field, the string written under it) of a dataclass."""
    (node,) = ast.parse(inspect.getsource(record)).body
    assert isinstance(node, ast.ClassDef)
    for field, text in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            yield field.target.id, " ".join(str(text.value.value).split())


def owner_of(operation: str) -> fault.Owner:
    """Whose doing it is when this operation does not end in its time."""
    return fault.classify(deadline.DeadlineExceeded(operation, 1), fault.Phase.RUN).owner


def budgets() -> str:
    """Every deadline with its default in seconds, its owner and its reason."""
    rows = (
        (f"`{op}`", f"{getattr(deadline.DEFAULT_BUDGETS, name):g} s", owner_of(op), reason)
        for name, reason in documented_fields(deadline.Budgets)
        if name != (op := name.removesuffix("_s"))
    )
    return table(("operation", "default", "owner", "why"), rows)


def chaos() -> str:
    """Every fault that can be injected, and what must follow."""
    rows = (
        (f"`{phase}`", f"`{kind}`", row.owner, f"`{row.code}`" * bool(row.code), again, row.reward)
        for (phase, kind), row in expected.table().items()
        for again in (yes(row.retried),)
    )
    return table(("phase", "kind", "owner", "class", "run again", "reward"), rows)


TABLES: dict[str, Callable[[], str]] = {"faults": faults, "budgets": budgets, "chaos": chaos}


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs for every page."""
    return PLACE.sub(lambda place: TABLES[place[1]](), markdown)
