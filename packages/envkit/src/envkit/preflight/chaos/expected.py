# SPDX-License-Identifier: Apache-2.0
"""The table of what must follow from each fault; also the list of the faults there are."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, cast

Worth = Literal["kept", "valid", "invalid", "none"]
"""What becomes of the struck attempt's reward; ``expected.toml`` says what each means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must follow from one kind of fault in one phase."""

    owner: str
    """Empty where nothing is to be blamed."""
    code: str
    retried: bool
    reward: Worth

    @property
    def rewarded(self) -> bool:
        """Whether the trial must end with a valid reward."""
        return self.retried or self.reward in ("kept", "valid")


@functools.cache
def table() -> Mapping[tuple[str, str], Expected]:
    """By (phase, kind)."""
    text = files("envkit.preflight.chaos").joinpath("expected.toml").read_text(encoding="utf-8")
    phases = cast("dict[str, dict[str, list[Any]]]", tomllib.loads(text))
    return {
        (phase, kind): Expected(owner=owner, code=code, retried=retried, reward=reward)
        for phase, kinds in phases.items()
        for kind, (owner, code, retried, reward) in kinds.items()
    }


def kinds_in(phase: str) -> list[str]:
    """The kinds of fault that can strike in a phase."""
    return [kind for where, kind in table() if where == phase]


def phases() -> list[str]:
    """Every phase, in the order a trial goes through them."""
    return list(dict.fromkeys(phase for phase, _ in table()))
