# SPDX-License-Identifier: Apache-2.0
"""An answer of labelled lines: what it claims under each label, and the reward file.

A claim is what follows its label on a line that begins with it; list marks, table bars and other
markup do not count. Where lines have a colon, a bar or an equals sign right after the label, as
the task shows it, only they are claims: others explain. Claims under one label must say the same.
What is in brackets explains a claim, and of `a * b = c` only `c` is claimed. Where that leaves no
number or several, none is claimed: an answer that lists candidates names none.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

LOGS = Path(os.environ.get("LOGS_ROOT", "/logs"))
MAX_BYTES = 64 * 1024
MAX_CLAIM = 200
"""Characters of a line that are read."""

_MARKS = re.compile(r"[*_`>#\"{}\[\]]")
_BEFORE = re.compile(r"\s*(?:[-+\N{BULLET}]|\d{1,2}[.)])?\s*")
_BRACKETS = re.compile(r"\([^()]*\)")
_YEAR = re.compile(r"\b(?:in|for|of|fy)\s?20\d\d\b", re.IGNORECASE)
_REMARK = re.compile(
    r"(?<=\d)[^\d]*?\b(?:not|instead|rather|below|under|against|versus|vs|excl\w*|before|after"
    r"|without|plus)\b.*",
    re.IGNORECASE,
)
"""What follows a figure to say what it is compared with."""
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-\N{MINUS SIGN}])?\s?(?:£|GBP\s?)?"
    r"(?P<digits>\d{1,3}(?:[, \u00a0\u202f]\d{3})+(?!\d)|\d{1,15})(?P<rest>\.\d{1,9})?(?![\d,]*\d)",
    re.IGNORECASE,
)

type Marks = dict[str, int]


def claim(answer: str, label: str) -> str:
    """What the answer says under the label, a pattern; empty where nothing or two things."""
    lines = [line[:MAX_CLAIM] for line in answer.splitlines()]
    parts = [part for line in lines if (part := _after(label, line))]
    shown = [part for part in parts if part.startswith((":", "="))]
    found = {text for part in shown or parts if (text := _value(part))}
    return found.pop() if len(found) == 1 else ""


def _after(label: str, line: str) -> str:
    """The rest of a line that begins with the label, without brackets; bars read as colons."""
    line = _BEFORE.sub("", _MARKS.sub(" ", line).strip(" |"), count=1)
    found = re.match(rf"{label}\b", line, re.IGNORECASE)
    if not found:
        return ""
    return _YEAR.sub(" ", _BRACKETS.sub(" ", line[found.end() :])).replace("|", ":").strip()


def _value(part: str) -> str:
    text = part.partition(":")[2] or part
    text = _REMARK.sub("", text.rpartition("=")[2])
    return " ".join(text.split()).strip(" :.,;")


def number(text: str) -> float | None:
    """The one number of a claim; None where there is none, or more than one."""
    found = list(_NUMBER.finditer(text))
    if len(found) != 1:
        return None
    digits = re.sub(r"\D", "", found[0]["digits"]) + (found[0]["rest"] or "")
    return float(digits) * (-1 if found[0]["sign"] else 1)


def is_close(text: str, expected: float, within: float) -> bool:
    """Whether the claim is this number."""
    shown = number(text)
    return shown is not None and abs(shown - expected) <= within


def run(judge: Callable[[str], Marks], right: str) -> None:
    """Check the judge on an answer that is known to be right, judge the agent's, write the reward.

    Exits non-zero and writes no reward where it cannot judge: its own check fails or the artifacts
    did not arrive. An absent, empty or unreadable answer is judged, as wrong.
    """
    if not all(judge(right).values()) or any(judge("").values()):
        sys.exit("verifier: its own check failed, so it cannot judge")
    artifacts = LOGS / "artifacts"
    if not artifacts.is_dir():
        sys.exit(f"verifier: {artifacts} did not arrive, so there is nothing to judge")
    marks = judge(_read(artifacts / "final_answer.txt"))
    print(json.dumps(marks))
    _write(marks, LOGS / "verifier")


def _read(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", errors="replace")


def _write(marks: Marks, verifier: Path) -> None:
    verifier.mkdir(parents=True, exist_ok=True)
    draft = verifier / "reward.json.tmp"
    rewards = {"reward": sum(marks.values()) / len(marks), **marks}
    draft.write_text(json.dumps(rewards), encoding="utf-8")
    draft.replace(verifier / "reward.json")
