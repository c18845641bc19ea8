# SPDX-License-Identifier: Apache-2.0
"""The tasks a crew knows: found, checked and prepared once, before any trial.

Contract: a task that could not be run is refused in one line as the crew opens. One that cannot be
prepared is a fault of its next trial, and prepared again by the one after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.deadline import Budgets
from envkit.fault import Fault, HarnessError
from envkit.preflight.plan import problems_of
from envkit.preflight.under_way import Shared, shared_by
from envkit.sandbox.prepare import Prepared
from envkit.task import find_tasks, load_task
from envkit.trial import policy


@dataclass(slots=True)
class Known:
    """One task."""

    directory: Path
    digest: str
    shared: Shared

    def take(self) -> Shared:
        """What a trial of it is given."""
        shared = self.shared
        if isinstance(shared[0], Fault):
            self.shared = None, shared[1]  # the next trial's own process prepares it
        return shared


class Tasks:
    """All of them, by directory and, where that tells them apart, by name."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._known = {each.directory: each for each in known}
        names = [each.name for each in self._known]
        self._named = {each.name: each for each in self._known if names.count(each.name) == 1}

    def find(self, task: str) -> Known:
        """Raises HarnessError where it is none of them."""
        directory = self._named.get(task) or Path(task).resolve()
        if directory not in self._known:
            raise HarnessError(
                f"task {task}: is none of the {len(self._known)} that this crew was opened with"
            )
        return self._known[directory]

    @property
    def digests(self) -> dict[str, str]:
        return {str(each.directory): each.digest for each in self._known.values()}

    @property
    def roots(self) -> list[Path]:
        """Whose interpreters are to be warm."""
        prepared = [each.shared[0] for each in self._known.values()]
        return sorted({each.root for each in prepared if isinstance(each, Prepared)})


def known_tasks(places: Sequence[Path], budgets: Budgets, *, local: bool) -> Tasks:
    """Find, check and prepare them.

    Raises:
        EnvkitError: a directory holds none, or one of them could not be run.
    """
    directories = {each.resolve(): None for place in places for each in find_tasks(place)}
    if not directories:
        raise HarnessError("a crew needs tasks; name their directories")
    for each in directories:
        if problems := problems_of(each, policy.NAME):
            raise HarnessError(f"{each}: {problems[0]}")
    return Tasks(
        Known(each, load_task(each).digest, shared_by(each, budgets, local=local))
        for each in directories
    )
