# SPDX-License-Identifier: Apache-2.0
"""A run's directory, read: its numbers, its settings and its manifest.

Contract: ``run.json`` or ``metrics.jsonl`` makes a directory that of a run; what else is not there
yet is empty. What is there and cannot be read is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from rltrain.refused import Refused
from rltrain.track.metrics import METRICS, History, read_metrics

MANIFEST: Final = "run.json"
SETTINGS: Final = "config.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What its directory holds."""

    path: Path
    history: History
    settings: str
    """The resolved settings as TOML; empty where there are none."""
    manifest: Mapping[str, Any]
    """What it was started with, by whatever names the loop gave."""

    def series(self, name: str) -> list[float | None]:
        """One number of every step."""
        return [step.numbers.get(name) for step in self.history.steps]

    def has(self, name: str) -> bool:
        """Whether any step measured it."""
        return any(value is not None for value in self.series(name))

    @property
    def steps(self) -> list[int]:
        """The numbers of its steps."""
        return [step.step for step in self.history.steps]


def read_run(path: Path) -> Run:
    """All of it.

    Raises:
        Refused: this is no run, or a file of it is damaged.
    """
    path = path.absolute()
    metrics = path / METRICS
    if not metrics.exists() and not all((path / each).exists() for each in (MANIFEST, SETTINGS)):
        missing = SETTINGS if (path / MANIFEST).exists() else MANIFEST  # envkit has a run.json too
        raise Refused(f"{path}: holds no {missing}; name a directory that rltrain fit has written")
    history = read_metrics(metrics) if metrics.exists() else History(steps=())
    settings = _text(path / SETTINGS)
    return Run(path=path, history=history, settings=settings, manifest=_manifest(path / MANIFEST))


def _manifest(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    try:
        manifest: Any = json.loads(_text(path))
    except (RecursionError, ValueError) as error:
        raise Refused(f"{path}: is no JSON ({error}); mend it or take it away") from error
    if not isinstance(manifest, dict):
        raise Refused(f"{path}: is no JSON object; mend it or take it away")
    return cast("dict[str, Any]", manifest)


def _text(path: Path) -> str:
    """A file's text, with a mark for what is no UTF-8; empty where there is no file."""
    try:
        return path.read_text("utf-8", errors="replace") if path.exists() else ""
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; make it readable") from error
