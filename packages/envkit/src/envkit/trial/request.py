# SPDX-License-Identifier: Apache-2.0
"""What one attempt of a trial is asked to do, as plain data that crosses a socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.trial.load import NO_LOAD, LoadShape


def attempt_name(trial_id: str, number: int) -> str:
    """Name of the directory of one attempt, counted from 1."""
    return trial_id if number == 1 else f"{trial_id}.attempt{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """One attempt of one trial."""

    trial_id: str
    attempt: int
    """From 1."""
    task_dir: Path
    trials_dir: Path
    agent: str
    """``replay``, ``oracle``, ``nop``, ``model`` or an import path ``module:Class``."""
    environment: str
    """Import path of the Harbor environment that the guard goes around."""
    budgets: Budgets = DEFAULT_BUDGETS
    unsafe: bool = False
    """No isolation: the reward is never valid."""
    load: LoadShape = NO_LOAD
    """What it does beside its task."""
    expected_tools: tuple[str, ...] = ()
    """All that the trial's servers must list; nothing where the world does not say."""
    agent_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments of ``model``, or of an agent of the user's own."""
    env_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments of an environment of the user's own."""

    @property
    def trial_name(self) -> str:
        """Name of the trial's directory; later attempts keep the earlier ones' directories."""
        return attempt_name(self.trial_id, self.attempt)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {**asdict(self), "task_dir": str(self.task_dir), "trials_dir": str(self.trials_dir)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back :meth:`to_dict`."""
        fields = dict(data)
        fields["budgets"] = Budgets(**data["budgets"])
        fields["load"] = LoadShape(**data["load"])
        fields["expected_tools"] = tuple(data["expected_tools"])
        fields |= {name: Path(data[name]) for name in ("task_dir", "trials_dir")}
        return cls(**fields)
