# SPDX-License-Identifier: Apache-2.0
"""The faults that a user asks for, from a TOML file.

::

    seed = 7          # which trials are struck
    hang_s = 30       # what the operation that hangs is given, in the struck attempt alone

    [[fault]]
    kind = ["kill-box", "kill-trial"]
    phase = "call"
    count = 2         # of each kind in each phase; or rate = 0.05, a share of the trials
    task = "budget-*" # optional: only trials of these tasks

Contract: whatever is wrong with the file is one `HarnessError`: what, where and what to do.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from envkit.fault import HarnessError
from envkit.preflight.chaos.expected import kinds_in, phases, table

HANG_S: Final = 30.0
"""Ten times what a connect, a list or a transfer takes at its slowest with 64 trials on 2 cores; a
slot is held so long by each fault that hangs."""

_TOP: Final = {"seed", "hang_s", "fault"}
_KEYS: Final = {"kind", "phase", "count", "rate", "task"}
_PROVIDERS: Final = {
    *("hang", "raise", "timeout", "rate-limited", "kill-trial"),
    *("clock-jump", "wall-clock-back", "wall-clock-ahead"),
}
"""Kinds that need no box of ours: any provider shows them."""

_BOXLESS: Final = {
    *("start", "answer", "collect", "stop"),
    *("grade-start", "carry", "reward", "grade-stop"),
}
"""Where they do so; in ``verify`` all do but those that reach into a box."""

_REACHES_IN: Final = {"kill-box", "out-of-memory", "disk-full", "pause"}
_AS_ROOT: Final = {
    *("kill-box", "kill-gateway", "kill-gateway-box", "stop-gateway", "pause", "out-of-memory")
}
"""They reach into the processes, groups and mounts of another user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One kind of fault in one phase, and how often."""

    kind: str
    phase: str
    count: int | None
    """Exactly so many trials; None where ``rate`` says how many."""
    rate: float
    task: str
    """A pattern of task names, as in a shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A whole file."""

    seed: int
    hang_s: float
    wanted: tuple[Wanted, ...]


def load_rules(path: Path, env: str) -> Rules:
    """Reads and checks a file of rules for one environment.

    Raises:
        HarnessError: it cannot be read, or asks for what there is not.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HarnessError(
            f"--chaos {path}: {error}; name a TOML file of [[fault]] rules"
        ) from error
    try:
        return _rules(data, env)
    except _WrongError as error:
        raise HarnessError(f"--chaos {path}: {error}") from error


class _WrongError(Exception):
    """What is wrong, and what to do."""


def _rules(data: dict[str, Any], env: str) -> Rules:
    _only(data, _TOP, "the file")
    seed, hang_s, rules = data.get("seed", 0), data.get("hang_s", HANG_S), data.get("fault")
    if not _whole(seed):
        raise _WrongError(f"seed = {seed!r}: write a whole number")
    if not _number(hang_s) or hang_s <= 0:
        raise _WrongError(f"hang_s = {hang_s!r}: write seconds above 0")
    if not isinstance(rules, list) or not rules:
        raise _WrongError("it holds no [[fault]]; write at least one")
    listed = cast("list[object]", rules)
    wanted = tuple(w for n, rule in enumerate(listed, 1) for w in _wanted(rule, f"fault {n}", env))
    return Rules(seed=seed, hang_s=float(hang_s), wanted=wanted)


def _wanted(rule: object, where: str, env: str) -> Iterator[Wanted]:
    if not isinstance(rule, dict):
        raise _WrongError(f"{where} is no table; write [[fault]]")
    rule = cast("dict[str, Any]", rule)
    _only(rule, _KEYS, where)
    count, rate = _how_many(rule, where)
    task = rule.get("task", "*")
    if not isinstance(task, str):
        raise _WrongError(f"{where}: task = {task!r}: write a pattern of task names")
    for phase in _names(rule, "phase", where):
        for kind in _names(rule, "kind", where):
            _check(kind, phase, where, env)
            yield Wanted(kind=kind, phase=phase, count=count, rate=rate, task=task)


def _only(data: dict[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(data.keys() - known):
        raise _WrongError(f"{where}: unknown key {unknown[0]}; use {', '.join(sorted(known))}")


def _how_many(rule: dict[str, Any], where: str) -> tuple[int | None, float]:
    count, rate = rule.get("count"), rule.get("rate")
    if (count is None) == (rate is None):
        raise _WrongError(f"{where}: write either count = N or rate = 0.05")
    if count is not None and not (_whole(count) and count > 0):
        raise _WrongError(f"{where}: count = {count!r}: write a whole number above 0")
    if rate is not None and not (_number(rate) and 0 < rate <= 1):
        raise _WrongError(f"{where}: rate = {rate!r}: write a share above 0 and up to 1")
    return count, float(rate or 0)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _names(rule: dict[str, Any], key: str, where: str) -> list[str]:
    value = rule.get(key)
    names = cast("list[object]", value if isinstance(value, list) else [value])
    if not names or not all(isinstance(name, str) for name in names):
        raise _WrongError(f'{where}: write {key} = "..." or a list of names')
    return cast("list[str]", names)


def _check(kind: str, phase: str, where: str, env: str) -> None:
    if phase not in phases():
        raise _WrongError(f"{where}: unknown phase {phase}; use {', '.join(phases())}")
    if (phase, kind) not in table():
        use = ", ".join(kinds_in(phase))
        raise _WrongError(f"{where}: {kind} cannot strike in {phase}; use {use}")
    if env != "local" and not _shown_anywhere(kind, phase):
        raise _WrongError(f"{where}: {kind} in {phase} needs --env local")
    as_root = kind in _AS_ROOT or (phase, kind) == ("verify", "disk-full")
    if as_root and os.geteuid() != 0:
        raise _WrongError(f"{where}: {kind} in {phase} needs root; run as root, or leave it out")


def _shown_anywhere(kind: str, phase: str) -> bool:
    if phase == "verify":
        return kind not in _REACHES_IN
    return phase in _BOXLESS and kind in _PROVIDERS
