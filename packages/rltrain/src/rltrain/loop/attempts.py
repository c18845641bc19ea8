# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The scheduler's attempts as trials on engines and nodes, and what became of these as its events.

Contract: an attempt whose trial ended before a kill is not run again: what is stored of it is told
as if it had ended now. One that cannot be begun has ended by a fault. Each is told of once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from envkit.crew.types import Begun, CrewEvent, Refused, Restarted, TrialOrder
from envkit.crew.types import Ended as TrialEnded
from rltrain.buffer.types import Ended, Event, Outcome, SampleId, Started
from rltrain.loop.lineage import Lineages
from rltrain.loop.prompts import Prompts
from rltrain.loop.rules import Trials
from rltrain.loop.trials import sample_id, trial_id
from rltrain.rollout.crew import Stored
from rltrain.rollout.crews import Crews, Lost
from rltrain.rollout.ground import Spawn
from rltrain.rollout.pool import Pool


class Attempts:
    """Those of a run."""

    def __init__(
        self,
        *,
        pool: Pool,
        crews: Crews,
        prompts: Prompts,
        lineages: Lineages,
        stored: Mapping[str, Stored],
        tell: Callable[[Event], None],
        rule: Trials,
        spawn: Spawn,
    ) -> None:
        """``tell`` is told at once; ``spawn`` runs a coroutine beside everything else."""
        self._pool, self._crews, self._prompts = pool, crews, prompts
        self._lineages, self._stored = lineages, dict(stored)
        self._tell, self._spawn, self._rule = tell, spawn, rule
        self.step = 0
        """That every engine holds at least."""
        self._under_way: set[SampleId] = set()
        self.reused = 0
        """Attempts that had ended before this process."""
        self.refused: list[str] = []
        self.restarted: list[int] = []
        """Tokens of trials that could not go on where they were killed: long ones are lost more
        often."""

    def start(self, sample: SampleId) -> None:
        """Have it run, or told again where it has ended already."""
        found = self._stored.pop(trial_id(sample), None)
        if found is not None:
            self.reused += 1
            self._tell_stored(sample, found)
            return
        self._under_way.add(sample)
        self._spawn(self._begin(sample))

    def cancel(self, sample: SampleId) -> None:
        """End it."""
        self._spawn(self._crews.cancel(trial_id(sample)))

    def heard(self, said: CrewEvent | Lost) -> None:
        """Something became of a trial, of an attempt or not."""
        sample = sample_id(getattr(said, "trial", ""))
        if sample is None or sample not in self._under_way:
            return
        match said:
            case Begun():
                self._tell(Started(sample=sample, version=self.step))
            case Restarted():
                self.restarted.append(said.tokens)
            case TrialEnded():
                if said.outcome != "cancelled":
                    self._rule.ended(_fault(said))
                self._end(sample, said.outcome, said.tokens, said.reward, said.oldest)
            case Refused() | Lost():
                self._rule.ended(_why(said))
                self.refused.append(f"{said.trial}: {_why(said)}")
                self._end(sample, "fault", 0, None, None)
            case _:
                pass

    def again(self, samples: Iterable[SampleId]) -> None:
        """Attempts that were under way when a process before this one was killed: those that have
        ended are told, the others begin once more."""
        for each in samples:
            self.start(each)

    def gone(self, samples: Iterable[SampleId]) -> None:
        """The same of those that were to be ended."""
        for each in samples:
            self._tell(Ended(sample=each, outcome="cancelled", tokens=0))

    async def _begin(self, sample: SampleId) -> None:
        trial, prompt = trial_id(sample), self._prompts.of(sample.group)
        engine = await self._pool.route(trial)
        await self._crews.begin(
            TrialOrder(
                trial_id=trial,
                group_id=sample.group,
                sample=sample.place,
                task=prompt.task,
                engine=engine.url,
            )
        )

    def _end(
        self,
        sample: SampleId,
        outcome: Outcome,
        tokens: int,
        reward: float | None,
        oldest: int | None,
    ) -> None:
        self._under_way.discard(sample)
        self._pool.release(trial_id(sample))
        self._tell(
            Ended(
                sample=sample,
                outcome=outcome,
                tokens=tokens,
                reward=reward,
                oldest=self._lineages.step_of(oldest)
                if oldest is not None and oldest >= 0
                else None,
            )
        )

    def _tell_stored(self, sample: SampleId, found: Stored) -> None:
        step = self._lineages.step_of(found.oldest)
        if step >= 0:
            self._tell(Started(sample=sample, version=step))
        ended = found.ended
        self._end(sample, ended.outcome, ended.tokens, ended.reward, ended.oldest)


def _fault(said: TrialEnded) -> str:
    """What took a trial; what only its own reward tells of is nothing."""
    return f"{said.fault}: {said.fault_message}"[:200] if said.outcome == "fault" else ""


def _why(said: Refused | Lost) -> str:
    return said.why if isinstance(said, Lost) else said.line
