# SPDX-License-Identifier: Apache-2.0
"""What a check has found: the carrier, and the same as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from rltrain.gates.causes import Cause
from rltrain.gates.figures import Bin, Figures, Turn, Worst
from rltrain.gates.options import Options

type Verdict = Literal["PASS", "FAIL", "NOT MEASURED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much there was, and how much of it was compared."""

    rows: int
    """Of the store, those that can be read."""
    sampled: int
    """Tokens."""
    comparable: Mapping[int, int]
    """Tokens, by the version of the weights; -1 where that is not known."""
    version: int
    """The one that is checked."""
    scored_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """It has passed where it has no cause."""

    options: Options
    causes: tuple[Cause, ...] = ()
    notes: tuple[str, ...] = ()
    """What was taken for granted."""
    scale: Scale | None = None
    figures: Figures | None = None
    """None where nothing was scored."""
    histogram: tuple[Bin, ...] = ()
    turns: tuple[Turn, ...] = ()
    worst: tuple[Worst, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What the exit code says too; what was not measured has failed."""
        if not self.causes:
            return "PASS"
        return "NOT MEASURED" if self.causes[0].code == "not_measured" else "FAIL"

    @property
    def exit_code(self) -> int:
        """0 or 1."""
        return int(bool(self.causes))


def document(report: Report) -> dict[str, Any]:
    """All of it, as JSON can hold it; the last bin has no end."""
    plain = _plain({"verdict": report.verdict, **asdict(report)})
    return cast("dict[str, Any]", plain)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            told = cast("dict[Any, Any]", value)
            return {str(name): _plain(each) for name, each in told.items()}
        case list() | tuple():
            return [_plain(each) for each in cast("list[Any]", value)]
        case float() if not math.isfinite(value):
            return None
        case str() | int() | float() | None:
            return value
        case _:
            return str(value)
