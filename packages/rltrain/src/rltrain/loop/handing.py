# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Weights from the trainer to every engine, and what is checked before they are used.

Contract: an engine is ready for trials only after it holds weights that were checked on it. One
that fails while it is sent them is replaced, and the others go on; one that holds wrong weights
ends the run. An engine that comes late is handed those there are before its first trial. No step is
taken before engines and trainer were compared on enough under the weights that it changes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from envkit.crew.types import CrewEvent, Ended
from rltrain.gates.live import TRAJECTORIES, expect_passed, figures, measured
from rltrain.loop.lineage import Lineages
from rltrain.loop.parts import Parts
from rltrain.loop.rank import Handed
from rltrain.loop.types import LiveWork
from rltrain.refused import Stopped
from rltrain.rollout.crew import Stored
from rltrain.rollout.crews import Lost
from rltrain.rollout.engine import EngineAt
from rltrain.sync.canary import Checked
from rltrain.sync.errors import ReplicasLost, SyncError, WrongWeights
from rltrain.sync.types import Replica, State

REMEMBERED: Final = 512
"""Trials that ended last."""
TRIES: Final = 3
SPARE: Final = 1.1
"""Times the tokens that a gate wants: a trial may be cut to what an engine takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """A trial that ended, with tokens of the model's."""

    trial: str
    tokens: int


class Handing:
    """Of a run."""

    def __init__(
        self, work: LiveWork, parts: Parts, lineages: Lineages, say: Callable[[str], None]
    ) -> None:
        self._work, self._parts, self._lineages, self._say = work, parts, lineages, say
        self._gates = work.settings.gates
        self._recent: deque[Recent] = deque(maxlen=REMEMBERED)
        self._one_at_a_time = asyncio.Lock()
        self._checked: Checked | None = None

    def remember(self, stored: Iterable[Stored]) -> None:
        """What ended before this process, oldest first, may be scored again too."""
        for each in stored:
            if each.sampled_tokens:
                self._recent.append(Recent(trial=each.trial_id, tokens=each.sampled_tokens))

    def heard(self, said: CrewEvent | Lost) -> None:
        """Something became of a trial: what it sampled may be scored again."""
        if isinstance(said, Ended) and said.sampled_tokens:
            self._recent.append(Recent(trial=said.trial, tokens=said.sampled_tokens))

    async def hand_on(self) -> dict[str, float]:
        """All engines that answer get the weights there are; what it came to.

        Raises:
            WrongWeights: an engine does not hold what the trainer has.
        """
        async with self._one_at_a_time:
            engines = self._parts.pool.answering
            return await self._handed(engines) if engines else {}

    async def hand_to_late(self) -> None:
        """For ever: engines that were started anew get the weights there are."""
        while True:
            late = await self._parts.arrived.get()
            async with self._one_at_a_time:
                if late in self._parts.pool.bare:
                    await self._handed((late,))

    async def pass_gate(self) -> dict[str, float]:
        """Have enough compared under the weights that the next step changes; what it came to.

        Raises:
            GateFailed: engines and trainer differ, or there is too little to compare.
        """
        checked = self._checked
        if checked is None or not measured(checked, self._gates):
            checked = await self._compared()
        try:
            expect_passed(checked, self._gates)
        except Stopped as failed:
            if not self._gates.override:
                raise
            self._say(f"{failed} (overridden)")
        return figures(checked)

    async def _compared(self) -> Checked:
        """Of the engines that are ready. One that dies meanwhile is replaced, and waited for where
        there is no other."""
        while True:
            engines = await self._parts.pool.some_ready()
            replicas = [self._replica(each) for each in engines]
            async with self._one_at_a_time:
                checked = await self._checked_on(replicas)
            silent = {each.replica for each in checked.silent}
            for each in engines:
                if each.name in silent:
                    self._parts.pool.replace(each)
            if checked.replicas:
                return checked

    async def _handed(self, engines: Sequence[EngineAt]) -> dict[str, float]:
        """Hand them the weights. Those that fail are replaced, and those that another one's failure
        kept from them are asked again."""
        told: dict[str, float] = {}
        for _ in range(TRIES):
            states = await self._asked(engines, told)
            for each in engines:
                if states[each.name] is State.NEW:
                    self._parts.pool.holds(each)
                elif states[each.name] is State.LOST:
                    self._parts.pool.replace(each)
            engines = [each for each in engines if states[each.name] is State.OLD]
            if not engines:
                return told
        names = ", ".join(each.name for each in engines)
        raise SyncError(f"sync: {names}: still without the weights after {TRIES} tries")

    async def _asked(self, engines: Sequence[EngineAt], told: dict[str, float]) -> dict[str, State]:
        """What each is good for after one sync, its check included."""
        replicas = [self._replica(each) for each in engines]
        states = {each.name: State.NEW for each in engines}
        try:
            handed = await self._parts.trainer.sync(replicas, self._lineages, self._to_score())
            told |= _numbers(handed)
            checked = handed.checked
        except WrongWeights:
            raise
        except SyncError as error:
            states = self._after(error, states)
            new = [each for each in replicas if states[each.name] is State.NEW]
            checked = await self._checked_on(new) if new else None
        return states if checked is None else self._after_check(checked, states)

    async def _checked_on(self, replicas: Sequence[Replica]) -> Checked:
        return await self._parts.trainer.check(replicas, self._lineages, self._to_score())

    def _after_check(self, checked: Checked, states: dict[str, State]) -> dict[str, State]:
        self._checked = checked
        try:
            checked.expect_quiet()
        except ReplicasLost as error:
            return {**states, **{each.replica: each.state for each in error.outcomes}}
        return states

    def _after(self, error: SyncError, states: dict[str, State]) -> dict[str, State]:
        """What it says of each; those it says nothing of hold what they held."""
        if not error.outcomes:
            raise error
        self._say(f"sync: {error}")
        said = {each.replica: each.state for each in error.outcomes}
        return {name: said.get(name, State.OLD) for name in states}

    def _replica(self, at: EngineAt) -> Replica:
        return Replica(name=at.name, url=at.url, ranks=self._work.cluster.engine_tp)

    def _to_score(self) -> list[Any]:
        """A reference to the newest trials that have enough tokens together; none of none."""
        chosen: list[Recent] = []
        for each in reversed(self._recent):
            tokens = sum(one.tokens for one in chosen)
            if tokens >= SPARE * self._gates.least_tokens and len(chosen) >= TRAJECTORIES:
                break
            chosen.append(each)
        trials = [each.trial for each in chosen]
        return [self._parts.crews.samples(trials)] if trials else []


def _numbers(handed: Handed | None) -> dict[str, float]:
    if handed is None or handed.synced is None:
        return {}
    synced = handed.synced
    return {
        "sync/seconds": synced.seconds,
        "sync/paused_s": max((each.paused_s for each in synced.replicas), default=0.0),
        "sync/tensors": synced.tensors,
        "sync/mib": synced.bytes / 2**20,
        **(figures(handed.checked) if handed.checked else {}),
    }
