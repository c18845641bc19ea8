# SPDX-License-Identifier: Apache-2.0
"""A run on a clock of its own, through the real scheduler: no engine, no trainer, only their times.

Contract: the same setting gives the same run. Lengths, faults and trials that hang are drawn here;
which samples are begun and trained on is the scheduler's. While weights are synced every sample
stands still, as engines that are paused with their caches kept.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from rltrain.buffer.book import Ledger
from rltrain.buffer.config import BufferConfig
from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import (
    Against,
    Batch,
    Cancel,
    Decision,
    DropGroup,
    Ended,
    Event,
    Exhausted,
    Offered,
    Outcome,
    Passed,
    SampleId,
    Start,
    Started,
    Synced,
    TrainerFree,
    Updated,
    Wait,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of a sample: lognormal, part of it the prompt's, clipped."""

    median: float = 20_000.0
    sigma: float = 1.0
    """Deviation of the logarithm."""
    by_prompt: float = 0.6
    """Share of its variance that samples of a prompt have in common."""
    least: int = 2_000
    most: int = 128_000

    def drawn(self, groups: int, samples: int, seed: int) -> list[list[int]]:
        """Of each sample of each group."""
        source = random.Random(seed)
        return [self._group(source, samples) for _ in range(groups)]

    def _group(self, source: random.Random, samples: int) -> list[int]:
        common = math.sqrt(self.by_prompt) * source.gauss()
        own = math.sqrt(1 - self.by_prompt)
        return [self._clipped(common + own * source.gauss()) for _ in range(samples)]

    def _clipped(self, deviations: float) -> int:
        tokens = self.median * math.exp(self.sigma * deviations)
        return round(min(max(tokens, self.least), self.most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The defaults are of performance bar 10."""

    buffer: BufferConfig = field(default_factory=BufferConfig)
    prompts: int = 16
    samples: int = 16
    slots: int = 550
    steps: int = 120
    trainer_s: float = 300.0
    sync_s: float = 10.0
    start_s: float = 60.0
    """Of a trial, before and after its tokens."""
    tokens_per_s: float = 50.0
    """Of one trial."""
    fault_share: float = 0.0
    """Attempts that a fault takes, anywhere between their begin and their end."""
    hang_share: float = 0.0
    """Attempts that take ``hang_s``, with as many tokens as they would have had."""
    hang_s: float = 3600.0
    again: bool = False
    """A dropped group is offered once more, after all others."""
    seed: int = 0

    def drawn(self, lengths: Lengths) -> list[list[int]]:
        """Lengths for all steps."""
        return lengths.drawn(self.steps * self.prompts, self.samples, self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A batch, when it was taken, and how old each of its samples was."""

    at_s: float
    tokens: tuple[int, ...]
    staleness: tuple[int, ...]
    short: int
    """Samples that its groups lacked."""
    against: Against


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of it."""

    setting: Setting
    steps: tuple[Step, ...]
    seconds: float
    population: float
    """Mean tokens of a sample, of all that there were."""
    busy_slot_s: float
    sampled: int
    """Tokens, of every attempt, as this side counts them."""
    ledger: Ledger
    dropped: int

    @property
    def steps_per_h(self) -> float:
        """Over the whole run, its first and last steps included."""
        return 3600 * len(self.steps) / self.seconds

    @property
    def stalest(self) -> int:
        """Of any sample that a step was taken on."""
        return max((age for step in self.steps for age in step.staleness), default=0)

    @property
    def over(self) -> float:
        """Share of the samples above the bound."""
        ages = [age for step in self.steps for age in step.staleness]
        return sum(age > self.setting.buffer.staleness for age in ages) / max(1, len(ages))

    @property
    def lost(self) -> float:
        """Share of the tokens, of those that were sampled, on which no step was taken."""
        trained = sum(sum(step.tokens) for step in self.steps)
        return 1 - trained / max(1, self.sampled)

    def bias(self, steps: int, first: int = 0) -> float:
        """How much longer samples of so many steps are than those of the population."""
        means = [sum(s.tokens) / len(s.tokens) for s in self.steps[first : first + steps]]
        return sum(means) / len(means) / self.population - 1


def simulate(setting: Setting, lengths: Sequence[Sequence[int]] | None = None) -> Run:
    """Run until every prompt was trained on or dropped; ``lengths`` of each sample of each one."""
    return Clock(setting, lengths or setting.drawn(Lengths())).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that is under way; times are of its engine, which stands still in a sync."""

    sample: SampleId
    began_s: float
    ends_s: float
    tokens: int
    outcome: Outcome


class Clock:
    """Drives the scheduler through a run; a subclass may say otherwise what takes how long."""

    def __init__(self, setting: Setting, lengths: Sequence[Sequence[int]]) -> None:
        self.setting = setting
        self.lengths = lengths
        self.scheduler = Scheduler(
            setting.buffer, prompts=setting.prompts, samples=setting.samples, slots=setting.slots
        )
        self.source = random.Random(f"{setting.seed}/trials")
        self.now_s = 0.0
        self.paused_s = 0.0
        self.pause_began_s: float | None = None
        self.trials: dict[SampleId, Attempt] = {}
        self.ends: list[tuple[float, int, SampleId]] = []
        self.number = 0
        self.trainer: list[tuple[float, Event]] = []
        self.wake_s: float | None = None
        self.steps: list[Step] = []
        self.busy_slot_s = 0.0
        self.dropped = 0
        self.left = len(lengths)
        self.updates = 0
        self.sampled = 0
        self.tokens: dict[SampleId, int] = {}
        self.begun_at: dict[SampleId, int] = {}

    def run(self) -> Run:
        for number in range(len(self.lengths)):
            self.tell(Offered(group=str(number)))
        self.tell(Exhausted())
        self.tell(TrainerFree())
        while self.left or self.trainer:
            self.advance()
        tokens = [each for group in self.lengths for each in group]
        return Run(
            setting=self.setting,
            steps=tuple(self.steps),
            seconds=self.now_s,
            population=sum(tokens) / len(tokens),
            busy_slot_s=self.busy_slot_s,
            sampled=self.sampled,
            ledger=self.scheduler.ledger,
            dropped=self.dropped,
        )

    def advance(self) -> None:
        """To what happens next; of two at once, to the trainer's."""
        trainer = self.next_trainer_s()
        end = self.next_end_s()
        wake = math.inf if self.wake_s is None else self.wake_s
        if min(trainer, end, wake) == math.inf:
            raise RuntimeError(f"nothing will happen after {self.now_s:g} s")
        if trainer <= min(end, wake):
            self.step_on()
        elif end <= wake:
            self.end()
        else:
            self.to(wake)
            self.wake_s = None
            self.tell(Passed())

    def to(self, at_s: float) -> None:
        at_s = max(at_s, self.now_s)
        self.busy_slot_s += (at_s - self.now_s) * len(self.trials)
        self.now_s = at_s

    # --- trials -----------------------------------------------------------------------------------

    def engine_s(self) -> float:
        """Now, less all pauses so far."""
        at = self.now_s if self.pause_began_s is None else self.pause_began_s
        return at - self.paused_s

    def next_end_s(self) -> float:
        while self.ends and self.ends[0][2] not in self.trials:
            heapq.heappop(self.ends)
        if not self.ends or self.pause_began_s is not None:
            return math.inf
        return self.ends[0][0] + self.paused_s

    def trial_s(self, sample: SampleId, tokens: int) -> float:
        """Of a trial that nothing happens to, by its engine's clock."""
        return self.setting.start_s + tokens / self.setting.tokens_per_s

    def start(self, sample: SampleId) -> None:
        setting, begins = self.setting, self.engine_s()
        tokens = self.lengths[group_of(sample)][sample.place]
        seconds = self.trial_s(sample, tokens)
        if setting.hang_share and self.source.random() < setting.hang_share:
            seconds = setting.hang_s
        outcome: Outcome = "valid"
        if setting.fault_share and self.source.random() < setting.fault_share:
            share = self.source.random()
            seconds, tokens, outcome = share * seconds, int(share * tokens), "fault"
        self.trials[sample] = Attempt(
            sample=sample,
            began_s=begins,
            ends_s=begins + seconds,
            tokens=tokens,
            outcome=outcome,
        )
        self.begun_at[sample] = self.engines
        self.number += 1
        heapq.heappush(self.ends, (begins + seconds, self.number, sample))
        self.tell(Started(sample=sample, version=self.engines))

    def end(self) -> None:
        self.to(self.next_end_s())
        trial = self.trials.pop(heapq.heappop(self.ends)[2])
        reward = self.source.random() if trial.outcome == "valid" else None
        self.sampled += trial.tokens
        self.tokens[trial.sample] = trial.tokens
        self.tell(
            Ended(sample=trial.sample, outcome=trial.outcome, tokens=trial.tokens, reward=reward)
        )

    def cancel(self, sample: SampleId) -> None:
        trial = self.trials.pop(sample)
        spent = (self.engine_s() - trial.began_s) / max(trial.ends_s - trial.began_s, 1e-9)
        tokens = int(min(1.0, spent) * trial.tokens)
        self.sampled += tokens
        self.tell(Ended(sample=sample, outcome="cancelled", tokens=tokens))

    # --- the trainer ------------------------------------------------------------------------------

    engines: int = 0
    """The version that every engine holds."""

    def batch(self, batch: Batch) -> None:
        """Ages and tokens are this side's own, whatever the batch says of itself."""
        taken = [each for group in batch.groups for each in group.samples]
        self.steps.append(
            Step(
                at_s=self.now_s,
                tokens=tuple(self.tokens.pop(each) for each in taken),
                staleness=tuple(self.updates - self.begun_at.pop(each) for each in taken),
                short=len(batch.groups) * self.setting.samples - len(taken),
                against=batch.against,
            )
        )
        self.left -= len(batch.groups)
        self.trainer.append((self.now_s + self.trainer_s(self.steps[-1]), Updated()))

    def trainer_s(self, step: Step) -> float:
        """Of a step on a batch."""
        return self.setting.trainer_s

    def next_trainer_s(self) -> float:
        return self.trainer[0][0] if self.trainer else math.inf

    def step_on(self) -> None:
        at_s = self.next_trainer_s()
        _, event = self.trainer.pop(0)
        self.to(at_s)
        if isinstance(event, Updated):
            self.updates += 1
            self.pause_began_s = self.now_s
            synced = Synced(version=self.scheduler.version + 1)
            self.trainer.append((self.now_s + self.setting.sync_s, synced))
        elif isinstance(event, Synced):
            assert self.pause_began_s is not None
            self.paused_s += self.now_s - self.pause_began_s
            self.pause_began_s = None
            self.engines = event.version
        self.tell(event)
        if isinstance(event, Synced):
            self.tell(TrainerFree())

    # --- the scheduler ----------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        for decision in self.scheduler.on(event, self.now_s):
            self.do(decision)

    def do(self, decision: Decision) -> None:
        match decision:
            case Start():
                self.start(decision.sample)
            case Cancel():
                self.cancel(decision.sample)
            case Batch():
                self.batch(decision)
            case Wait():
                self.wake_s = decision.until_s
            case DropGroup():
                self.drop(decision.group)
            case _:
                pass

    def drop(self, group: str) -> None:
        self.dropped += 1
        if not self.setting.again:
            self.left -= 1
            return
        name, _, times = group.partition("/")
        self.tell(Offered(group=f"{name}/{int(times or 0) + 1}"))


def group_of(sample: SampleId) -> int:
    """Which of the groups that there are lengths of, whatever time it is offered."""
    return int(sample.group.partition("/")[0])
