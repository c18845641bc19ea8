# SPDX-License-Identifier: Apache-2.0
"""The levels of a ramp: what was asked for, and a plan for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from envkit.fault import HarnessError
from envkit.preflight.names import trial_id
from envkit.preflight.plan import UNSAFE
from envkit.preflight.text import count
from envkit.preflight.types import Plan, TrialSpec

LEVELS_MOST: Final = 20
"""Each takes minutes."""
NUMBER: Final = re.compile(r"\s*[1-9][0-9]{0,5}\s*")


def parse_levels(text: str) -> tuple[int, ...]:
    """``8,64,550`` as (8, 64, 550).

    Raises:
        HarnessError: they are not two or more rising numbers.
    """
    parts = text.split(",")
    levels = tuple(int(part) for part in parts if NUMBER.fullmatch(part))
    rising = all(low < high for low, high in pairwise(levels))
    if not 2 <= len(levels) <= LEVELS_MOST or len(levels) < len(parts) or not rising:
        raise HarnessError(
            f"--ramp {text}: not two to {LEVELS_MOST} rising concurrencies; write for example "
            "8,64,256"
        )
    return levels


def plans_of(plan: Plan, levels: Sequence[int], repeat: int | None) -> tuple[Plan, ...]:
    """One plan a level out of the plan of the highest; samples are counted through all levels.

    Raises:
        HarnessError: the environment has no concurrency, or the trials are too few for it.
    """
    if plan.env == UNSAFE:
        raise HarnessError(f"--ramp: --env {UNSAFE} runs one trial at a time; use another one")
    tasks = len({spec.task_dir for spec in plan.specs})
    if repeat and len(plan.specs) < levels[-1]:
        raise HarnessError(
            f"--ramp: {levels[-1]} at once are more than the {count(len(plan.specs), 'trial')}; "
            f"use --repeat {-(-levels[-1] // tasks)}, or leave it out"
        )
    plans: list[Plan] = []
    begun = 0
    for level in levels:
        wanted = plan.specs if repeat else plan.specs[: max(level, tasks)]
        out = plan.out_dir / f"at-{level}"
        specs = tuple(_shifted(spec, begun, out) for spec in wanted)
        begun += max((spec.sample + 1 for spec in wanted), default=0)
        plans.append(replace(plan, specs=specs, concurrency=level, broken=(), out_dir=out))
    return tuple(plans)


def _shifted(spec: TrialSpec, by: int, out_dir: Path) -> TrialSpec:
    slug, _, _ = spec.trial_id.rpartition("__")
    sample = spec.sample + by
    return replace(spec, sample=sample, trial_id=trial_id(slug, sample), out_dir=out_dir)


def whole(plan: Plan, plans: Sequence[Plan]) -> Plan:
    """The trials of all levels as one plan."""
    return replace(plan, specs=tuple(spec for level in plans for spec in level.specs))
