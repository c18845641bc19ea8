# SPDX-License-Identifier: Apache-2.0
"""What an answer claims under a label: its value, wherever the writer put it.

A line that begins with a label is a claim; all such lines must agree. Without one, the last
mention counts, and without any mention every number of the kind in the text must be right: an
answer that lists all candidates names none.
"""

import re
from collections.abc import Callable
from itertools import pairwise

from numbers_in_text import Number, numbers

LABELS = {
    "margin": re.compile(r"(?:(?:adjusted|adj\.?)\s+)?(?:ebitda[\s-]+)?margin", re.IGNORECASE),
    "amount": re.compile(r"(?:(?:adjusted|adj\.?)\s+)?ebitda(?![\s-]+margin)", re.IGNORECASE),
    "note": re.compile(r"(?:finance\s+|policy\s+)?note|\bpolicy", re.IGNORECASE),
}
_REFERENCE = re.compile(r"\bFN[\W_]?(\d{4})[\W_]?0?(\d{1,2})(?!\d)", re.IGNORECASE)
_OTHER = re.compile(r"(?:not|replac\w+|supersed\w+|draft)\s+(?:the\s+)?(?:draft\s+)?(?:note\s+)?$")
_MARKS = re.compile(r"[*_`|>#\"{}\[\]]")
_HEDGE = re.compile(r"\b(?:or|either|alternatively)\b", re.IGNORECASE)


def plain(answer: str) -> str:
    """The answer without markup, so that a bold label, a table or JSON reads like a line."""
    return _MARKS.sub(" ", answer)


def states(text: str, label: str, is_right: Callable[[Number], bool]) -> bool:
    """Whether the text claims the right number under the label."""
    text = _REFERENCE.sub(" ", text)
    lines, mentions = _claims(text, label)
    if lines:
        return all(_is_claim_right(claim, label, is_right) for claim in lines)
    if mentions:
        return _is_claim_right(mentions[-1], label, is_right)
    found = _of_kind(numbers(text), label)
    return bool(found) and all(is_right(number) for number in found)


def _claims(text: str, label: str) -> tuple[list[str], list[str]]:
    spans = sorted(
        (match.start(), match.end(), name)
        for name, pattern in LABELS.items()
        for match in pattern.finditer(text)
    )
    lines: list[str] = []
    mentions: list[str] = []
    for (start, stop, name), (end, _, _) in pairwise([*spans, (len(text), 0, "")]):
        claim = _first_line_with_digits(text[stop:end])
        if name == label and claim:
            before = text[text.rfind("\n", 0, start) + 1 : start]
            begins = not re.search(r"[^\W\d]", before)
            (lines if begins else mentions).append(claim)
    return lines, mentions


def _first_line_with_digits(text: str) -> str:
    return next((line for line in text.split("\n") if re.search(r"\d", line)), "")


def _is_claim_right(claim: str, label: str, is_right: Callable[[Number], bool]) -> bool:
    outside = re.sub(r"\([^()]*\)", " ", claim)
    claim = outside if numbers(outside) else claim
    after = claim.partition(":")[2]
    claim = after if numbers(after) else claim
    found = _of_kind(numbers(_result(claim)), label)
    if _HEDGE.search(claim):
        return bool(found) and all(is_right(number) for number in found)
    return bool(found) and is_right(found[0])


def _result(claim: str) -> str:
    """Of `a + b = c` the side that is one number; otherwise the whole claim."""
    sides = claim.split("=")
    single = [side for side in sides if len(numbers(side)) == 1]
    return single[0] if len(sides) > 1 and single else claim


def _of_kind(found: list[Number], label: str) -> list[Number]:
    if label == "amount":
        return [number for number in found if not number.percent]
    marked = [number for number in found if number.percent]
    return marked or found


def names_note(text: str, year: int, number: int) -> bool:
    """Whether the note that the text applies is this one, and it applies no other."""
    outside = re.sub(r"\([^()]*\)", " ", text)
    outside = outside if _REFERENCE.search(outside) else text
    found = [
        (int(match[1]), int(match[2]))
        for match in _REFERENCE.finditer(outside)
        if not _OTHER.search(outside[max(0, match.start() - 40) : match.start()].lower())
    ]
    return bool(found) and all(reference == (year, number) for reference in found)
