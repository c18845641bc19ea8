# SPDX-License-Identifier: Apache-2.0
"""Make errors of one kind read the same: numbers, quotes, paths and ids masked.

Contract: pure and bounded; the result is safe to show. Names that are the point of the
message stay (`No module named pandas`, `python: not found`). A message that repeats itself, as a
validator does for each bad item, is folded: each masked part is kept once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from envkit.audit.secrets import mask
from envkit.audit.text import clean, cut, window

LIMIT: Final = 160

_MODULE: Final = re.compile(r"(No module named )['\"]([\w.\-]{1,80})['\"]")
_HELP: Final = re.compile(r"For further information visit \S+")
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.\-]{1,12}://[^\s'\"<>]+", re.IGNORECASE)
_ID: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b"
    r"|\b(?=[a-f]*\d)[0-9a-f]{12,}\b",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"(?<!\w)(['\"`])(?!\1)[^\n]{0,300}?\1(?!\w)")
_NUMBER: Final = re.compile(r"(?<!\w)\d[\d,]*(?:\.\d+)*(?:e[-+]?\d+)?(?!\w)", re.IGNORECASE)
_PATH: Final = re.compile(
    r"(?<![\w/<.])(?:[A-Za-z]:\\|~/|\.{1,2}/|/(?=[\w.]))"
    r"(?:[^/\\\n'\"`:;,<>|]{1,80}[/\\]){0,30}"
    r"(?:[^/\\\n'\"`:;,<>|]{0,80}\.[A-Za-z]\w{0,4}\b|[^\s/\\'\"`:;,<>|\])}]*)"
)
_PLURAL: Final = re.compile(r"# validation error for")


def fingerprint(text: str) -> str:
    """The masked, folded form of an error message, at most `LIMIT` characters."""
    text = mask(clean(window(text)))
    for pattern, mark in (
        (_HELP, ""),
        (_MODULE, r"\1\2"),
        (_URL, "<url>"),
        (_ID, "<id>"),
        (_PATH, "<path>"),
        (_QUOTED, "'*'"),
        (_NUMBER, "#"),
        (_PLURAL, "# validation errors for"),
    ):
        text = pattern.sub(mark, text)
    return cut(_fold(text), LIMIT)


def _fold(text: str) -> str:
    """Each part once; a part that an earlier one ends in says nothing new."""
    kept: list[str] = []
    for part in _parts(text):
        if not any(earlier.endswith(part) for earlier in kept):
            kept.append(part)
        if sum(map(len, kept)) > LIMIT:  # the rest is cut anyway
            break
    return "; ".join(kept).replace(":; ", ": ")


def _parts(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        for raw in line.split("; "):
            if part := " ".join(raw.split()):
                yield part
