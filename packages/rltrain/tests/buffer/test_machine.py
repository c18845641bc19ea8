# SPDX-License-Identifier: Apache-2.0
"""Whatever order things happen in: what the scheduler promises, held against a second account."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from rltrain.buffer.config import BufferConfig
from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import (
    Batch,
    Cancel,
    Ended,
    Event,
    Exhausted,
    Offered,
    Outcome,
    Passed,
    Sampled,
    SampleId,
    Start,
    Started,
    Synced,
    TrainerFree,
    Updated,
    Wait,
)

LONGEST_S = 50.0
"""Of an attempt; the trainer's wait is longer."""


@dataclass(kw_only=True)
class Told:
    """An attempt, as this side knows it."""

    began_s: float
    versions: list[int] = field(default_factory=list[int])
    outcome: Outcome | None = None
    reward: float | None = None
    cancelled: bool = False
    trained: int = 0

    @property
    def oldest(self) -> int:
        return min(self.versions)


class Anything(RuleBasedStateMachine):
    """Faults, late versions, engines behind, hung trials, restarts."""

    honest = False

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.told: dict[SampleId, Told] = {}
        self.engines = 0
        self.training = False
        self.free = False
        self.until_s: float | None = None
        self.number = 0
        self.batches = 0

    @initialize(
        staleness=st.integers(0, 3),
        prompts=st.integers(1, 3),
        samples=st.integers(2, 3),
        slots=st.integers(1, 12),
        retries=st.integers(0, 1),
        refills=st.integers(0, 1),
        head_start=st.integers(0, 2),
    )
    def begin(
        self,
        staleness: int,
        prompts: int,
        samples: int,
        slots: int,
        retries: int,
        refills: int,
        head_start: int,
    ) -> None:
        self.config = BufferConfig(
            staleness=staleness,
            retries=retries,
            refills=refills,
            head_start=head_start,
            bound_wait_s=2 * LONGEST_S,
        )
        self.slots = slots
        self.scheduler = Scheduler(self.config, prompts=prompts, samples=samples, slots=slots)
        self.twin = self.scheduler
        self.offer(3 * prompts)
        self.become_free()

    # --- telling ----------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        decided = self.scheduler.on(event, self.now_s)
        if self.twin is not self.scheduler:
            assert self.twin.on(event, self.now_s) == decided
        for each in decided:
            match each:
                case Start():
                    assert each.sample not in self.told
                    self.told[each.sample] = Told(began_s=self.now_s)
                case Cancel():
                    self.told[each.sample].cancelled = True
                case Batch():
                    self.taken(each)
                case Wait():
                    self.until_s = each.until_s
                case _:
                    pass
        for each in decided:
            if isinstance(each, Start):
                self.started(each.sample)

    def started(self, sample: SampleId) -> None:
        self.told[sample].versions.append(self.engines)
        self.tell(Started(sample=sample, version=self.engines))

    def taken(self, batch: Batch) -> None:
        self.free, self.training, self.until_s = False, True, None
        self.batches += 1
        assert batch.version == self.scheduler.version
        for group in batch.groups:
            rewards: list[float] = []
            for sample, age in zip(group.samples, group.staleness, strict=True):
                told = self.told[sample]
                told.trained += 1
                assert told.outcome in ("valid", "own")
                assert not told.cancelled
                assert told.reward is not None
                rewards.append(told.reward)
                assert age == batch.version - told.oldest <= self.config.staleness
            assert len(rewards) >= 2
            assert max(rewards) - min(rewards) > 1e-6

    def under_way(self) -> list[SampleId]:
        return [sample for sample, told in self.told.items() if told.outcome is None]

    def end(self, sample: SampleId, outcome: Outcome, reward: float) -> None:
        told = self.told[sample]
        told.outcome = outcome
        told.reward = reward if outcome in ("valid", "own") else None
        oldest = told.oldest if self.number % 2 else None
        self.tell(
            Ended(sample=sample, outcome=outcome, tokens=1, reward=told.reward, oldest=oldest)
        )

    # --- what happens -----------------------------------------------------------------------------

    @rule(count=st.integers(1, 4))
    def offer(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            self.tell(Offered(group=f"g{self.number}"))

    @rule(seconds=st.floats(0.0, LONGEST_S / 4))
    def time_passes(self, seconds: float) -> None:
        """Where all is well, no attempt takes longer than any may."""
        first = [told.began_s for told in self.told.values() if told.outcome is None]
        latest = min(first, default=self.now_s) + LONGEST_S
        if self.honest:
            seconds = max(0.0, min(seconds, latest - self.now_s))
        self.now_s += seconds if self.honest else 4 * seconds
        self.tell(Passed())

    @rule(data=st.data(), outcome=st.sampled_from(["valid", "valid", "own", "fault"]))
    def an_attempt_ends(self, data: st.DataObject, outcome: Outcome) -> None:
        if under_way := self.under_way():
            sample = data.draw(st.sampled_from(under_way))
            outcome = "valid" if self.honest and outcome == "fault" else outcome
            self.end(sample, outcome, data.draw(st.sampled_from([0.0, 0.5, 1.0])))

    @rule(data=st.data())
    def newer_weights_sample(self, data: st.DataObject) -> None:
        if under_way := self.under_way():
            sample = data.draw(st.sampled_from(under_way))
            self.told[sample].versions.append(self.engines)
            self.tell(Sampled(sample=sample, version=self.engines))

    @precondition(lambda self: not self.honest)
    @rule(data=st.data(), behind=st.integers(1, 4))
    def an_engine_was_behind(self, data: st.DataObject, behind: int) -> None:
        if under_way := self.under_way():
            sample = data.draw(st.sampled_from(under_way))
            version = max(0, self.engines - behind)
            self.told[sample].versions.append(version)
            self.tell(Sampled(sample=sample, version=version))

    @precondition(lambda self: not self.training and not self.free)
    @rule()
    def become_free(self) -> None:
        self.free = True
        self.tell(TrainerFree())

    @precondition(lambda self: self.training)
    @rule()
    def a_step_is_taken(self) -> None:
        self.training = False
        self.tell(Updated())

    @precondition(lambda self: self.engines < self.scheduler.version)
    @rule()
    def weights_are_synced(self) -> None:
        self.engines = self.scheduler.version
        self.tell(Synced(version=self.engines))

    @precondition(lambda self: not self.training)
    @rule()
    def it_is_restored(self) -> None:
        """From now on the restored one is asked the same, beside the one that never stopped."""
        state = json.loads(json.dumps(self.scheduler.state()))
        self.twin = Scheduler.restored(state, self.config, slots=self.slots)

    # --- what holds -------------------------------------------------------------------------------

    @invariant()
    def every_attempt_is_accounted_for(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        scheduler, ledger = self.scheduler, self.scheduler.ledger
        running, ending = len(scheduler.running), len(scheduler.ending)
        assert running + ending == len(self.under_way()) <= self.slots
        lost = sum(ledger.lost.values())
        held = running + ending + scheduler.buffered + scheduler.training
        assert ledger.started == len(self.told) == ledger.trained + lost + held
        taken = [told.trained for told in self.told.values()]
        assert max(taken, default=0) <= 1
        assert sum(taken) == ledger.trained + scheduler.training
        if self.honest:
            assert set(ledger.tokens_lost) <= {"no_variance"}

    def teardown(self) -> None:
        """From anywhere, whatever has happened: with attempts that end, steps go on."""
        if not hasattr(self, "scheduler"):
            return
        before = self.batches
        for turn in range(1000):
            if self.batches > before + 1:
                return
            self.drain(turn)
        raise AssertionError("nothing goes on")

    def drain(self, turn: int) -> None:
        if self.training:
            self.a_step_is_taken()
        elif self.engines < self.scheduler.version:
            self.weights_are_synced()
        elif not self.free:
            self.become_free()
        elif under_way := self.under_way():
            self.end(under_way[0], "valid", float(turn))
        else:
            self.offer(1)


class Honest(Anything):
    """No faults, and no engine samples with older weights than it was said to hold."""

    honest = True


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestHonest = Honest.TestCase
TestHonest.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)


def test_a_run_that_is_told_its_prompts_are_all_ends_with_every_group_accounted_for() -> None:
    """The twin of the machine's draining, with an end: what is offered is trained on or dropped."""
    machine = Honest()
    machine.begin(2, 2, 2, 3, 1, 1, 2)
    machine.tell(Exhausted())
    turn = 0
    while machine.scheduler.ledger.groups_trained < 6:
        machine.drain(turn := turn + 1)
    assert machine.scheduler.ledger.groups_dropped == {}
    assert machine.number == 6
