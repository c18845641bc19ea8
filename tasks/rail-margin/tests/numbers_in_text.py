# SPDX-License-Identifier: Apache-2.0
"""Numbers as people write them: 13,957 · 13.957 · 13 957 · EUR 13.96 million · 15,4 % · 0.154.

A number keeps every reading it may have, because `13.957` is thirteen thousand to one writer and
thirteen point nine to another. Whoever judges asks whether one of the readings is the right one.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?<![\w.,])(?P<sign>[-\N{MINUS SIGN}])?(?:€|eur)?[ \xa0]?"
    r"(?P<digits>\d{1,3}(?:[ \xa0\u202f'\N{RIGHT SINGLE QUOTATION MARK}.,]\d{3})+(?:[.,]\d+)?(?!\d)"
    r"|\d+(?:[.,]\d+)?)",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"\s*(%|percent|per\s+cent|pct|p\.c\.)", re.IGNORECASE)
_SCALE = re.compile(
    r"\s*(?:€|euros?|eur)?\s*"
    r"(?:(?P<thousand>thousands?|tsd|teur|k€|keur|k)"
    r"|(?P<million>millions?|mio|mln|mn|m€|meur|m)"
    r"|(?P<billion>billions?|bn))(?![a-z])",
    re.IGNORECASE,
)
_SCALES = {"thousand": 1.0, "million": 1_000.0, "billion": 1_000_000.0}
_YEAR = re.compile(r"(?:19|20)\d\d")
_DENIED = re.compile(r"\b(?:not|instead of|rather than)\s+(?:the\s+)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number in a text: its readings, and how many decimals each of them shows."""

    readings: tuple[tuple[float, int], ...]
    percent: bool
    scale: float | None
    """In thousands; None where no unit is written."""


def numbers(text: str) -> list[Number]:
    """Every number of the text in order, without years and without what the text denies."""
    return [
        _number(match, text)
        for match in _TOKEN.finditer(text)
        if not _is_year(match, text)
        and not _DENIED.search(text[max(0, match.start() - 24) : match.start()])
    ]


def _is_year(match: re.Match[str], text: str) -> bool:
    return bool(_YEAR.fullmatch(match["digits"])) and not _PERCENT.match(text, match.end())


def _number(match: re.Match[str], text: str) -> Number:
    sign = -1 if match["sign"] else 1
    scale = _SCALE.match(text, match.end())
    return Number(
        readings=tuple((sign * value, places) for value, places in _readings(match["digits"])),
        percent=bool(_PERCENT.match(text, match.end())),
        scale=_SCALES[str(scale.lastgroup)] if scale else None,
    )


def _readings(digits: str) -> list[tuple[float, int]]:
    token = re.sub(r"[^\d.,]", "", digits)
    marks = re.findall(r"[.,]", token)
    if not marks:
        return [(float(token), 0)]
    if len(marks) > 1 and len(set(marks)) == 1:
        return [(float(re.sub(r"[.,]", "", token)), 0)]
    whole, fraction = token.rsplit(marks[-1], 1)
    found = [(float(re.sub(r"[.,]", "", whole) + "." + fraction), len(fraction))]
    if len(marks) == 1 and len(fraction) == 3 and whole.lstrip("0"):
        found.append((float(whole + fraction), 0))
    return found


def is_amount(number: Number, expected: float) -> bool:
    """Whether it states the amount in thousands, rounded no coarser than fifty thousand."""
    if number.percent:
        return False
    scales = [number.scale] if number.scale else [1.0, 0.001]
    return any(
        abs(value * scale - expected) <= max(0.5, 0.5 * 10**-places * scale) <= 50
        for value, places in number.readings
        for scale in scales
    )


def is_percent(number: Number, expected: float) -> bool:
    """Whether it states the percentage to one decimal or finer, also as a fraction of one."""
    for value, _ in number.readings:
        shown = value if number.percent or abs(value) > 1 else 100 * value
        if abs(shown - expected) <= 0.0505:
            return True
    return False
