# SPDX-License-Identifier: Apache-2.0
"""Text from outside, made safe for one line of a terminal; figures as a person writes them.

Messages, task names and log lines come from boxes in which an agent ran: an escape sequence in
them could rewrite the screen, a newline could forge a line of the report.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from envkit.fault import HarnessError

UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories that move the cursor, reorder text or are invisible."""


def one_line(text: object, limit: int = 200) -> str:
    """``text`` without control or formatting characters, spaces folded, cut at ``limit``."""
    plain = "".join(" " if unicodedata.category(char) in UNSAFE else char for char in str(text))
    folded = " ".join(plain.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def percent(share: float | None) -> str:
    """A share as a percentage with two significant decimals; ``n/a`` where not measured."""
    return "n/a" if share is None else f"{100 * share:.2f}".rstrip("0").rstrip(".") + " %"


def seconds(value: float) -> str:
    """A duration: ``85 ms``, ``4.2 s``, ``3 min 05 s``."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"


def count(n: int, noun: str) -> str:
    """``1 trial``, ``2 trials``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share(option: str, text: str) -> float:
    """``0.5`` or ``0.5%`` as 0.005.

    Raises:
        HarnessError: it is no percentage from 0 to 100.
    """
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise HarnessError(f"{option} {text}: not a percentage from 0 to 100; write for example 2%")
    return value / 100
