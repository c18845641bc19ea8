# SPDX-License-Identifier: Apache-2.0
"""Make text of a trace safe to show: a trace is hostile until proven otherwise.

An escape sequence can rewrite the screen, a bidi control can make a line read backwards, a newline
can forge a row, half a gigabyte can fill a page. `shown` is the one door: cleaned, secrets masked,
one line, cut. Markup of a medium (HTML, rich) is escaped where that medium is written.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from envkit.audit.secrets import mask

WINDOW: Final = 4000
"""Characters of a text that are looked at; evidence never needs more."""
EVIDENCE: Final = 300

_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, APC
    r"|\x1b[ -/]*[0-~]?"
)
_LAST_WORD: Final = re.compile(r"\s\S*\Z")
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: str) -> str:
    """``text`` without escape sequences, control, bidi and invisible characters; lines stay."""
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return "".join(_plain(char) for char in text)


def _plain(char: str) -> str:
    if char == "\n" or char.isprintable():
        return char
    if char in "\t\r\f\v":
        return " "
    return "" if unicodedata.category(char) in _UNSAFE else " "


def shown(text: str, limit: int = EVIDENCE) -> str:
    """``text`` as one safe line of at most ``limit`` characters."""
    return cut(" ".join(mask(clean(window(text))).split()), limit)


def label(text: str) -> str:
    """A name as it is, spaces included, on one safe line: a citation must still name its file."""
    return mask(clean(text[:WINDOW])).replace("\n", " ")


def window(text: str) -> str:
    """The head of ``text``; a word cut in two at its end is dropped, it may be half a secret."""
    if len(text) <= WINDOW:
        return text
    head = text[:WINDOW]
    broken = _LAST_WORD.search(head)
    return head[: broken.start()] if broken else ""


def cut(text: str, limit: int) -> str:
    """``text``, or its head with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
