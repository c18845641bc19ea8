# SPDX-License-Identifier: Apache-2.0
"""HTML and SVG elements that cannot be injected into.

Contract: everything that is not itself ``Html`` is escaped when it becomes a child or an
attribute; there is no other way in. Characters that no document may hold are dropped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final

FORBIDDEN: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)
"""Control characters, lone surrogates, and marks that reorder the text around them."""
VOID: Final = frozenset({"meta", "br", "rect", "line", "circle", "path"})

type Child = Html | str | int | float | Iterable["Child"]


class Html(str):
    """Markup that ``el`` made."""

    __slots__ = ()


def el(name: str, /, *children: Child, **attributes: str | float) -> Html:
    """An element; ``class_`` and ``font_size`` become ``class`` and ``font-size``."""
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    inner = "".join(flatten(children))
    if name in VOID and not inner:
        return Html(f"<{name}{''.join(pairs)}/>")
    return Html(f"<{name}{''.join(pairs)}>{inner}</{name}>")


def flatten(children: Iterable[Child]) -> Iterable[str]:
    """The children's markup, all text in it escaped."""
    for child in children:
        if isinstance(child, Html):
            yield str(child)
        elif isinstance(child, str | int | float):
            yield escape(child)
        else:
            yield from flatten(child)


def escape(value: str | float) -> str:
    """Text that is only text, in an element as in a quoted attribute."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return html.escape(FORBIDDEN.sub("", text), quote=True)
