# SPDX-License-Identifier: Apache-2.0
"""A machine whose threads share two cores, tick by tick: a truth that knows nothing of `plan`.

Trials compute, wait, are sampled for and take turns one by one; an engine steps; a trainer works.
The scheduler alone is the real one. What a real run leaves is left in a directory.
"""

from __future__ import annotations

import json
import random
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from envkit.trajectory.types import Trajectory
from rltrain.buffer.config import BufferConfig
from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import (
    Batch,
    Ended,
    Event,
    Offered,
    SampleId,
    Start,
    Started,
    Synced,
    TrainerFree,
    Updated,
)
from rltrain.track.metrics import METRICS, Metrics

from .rows import row, written

TICK_S = 0.02
CORES, TURNS = 2.0, 8
STEP_S, SEQUENCE_S = 0.004, 0.0006
"""Of the engine, which has one thread."""
FIXED_S, TOKEN_S, SYNC_S = 1.0, 0.0004, 0.3
"""Of the trainer, which has two."""
SAID = 50
"""Tokens of a turn."""
UNIX_S = 1e9


@dataclass(frozen=True)
class Setting:
    concurrency: int
    staleness: int
    prompts: int = 4
    samples: int = 4


@dataclass
class Trial:
    parts: deque[tuple[str, float]]
    turns: int
    began_s: float
    left: float = 0.0
    asked_s: float = 0.0
    requests: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    @property
    def kind(self) -> str:
        return self.parts[0][0]

    @property
    def tokens(self) -> int:
        return 100 + self.turns * SAID + (self.turns - 1) * 30


class Machine:
    def __init__(self, setting: Setting, steps: int) -> None:
        self.setting = setting
        self.draw = random.Random(f"{setting}")
        self.scheduler = Scheduler(
            BufferConfig(staleness=setting.staleness),
            prompts=setting.prompts,
            samples=setting.samples,
            slots=setting.concurrency,
        )
        self.now_s = 0.0
        self.trials: dict[SampleId, Trial] = {}
        self.ended: list[tuple[SampleId, Trial, float]] = []
        self.tokens: dict[SampleId, int] = {}
        self.turns: set[SampleId] = set()
        self.queue: deque[SampleId] = deque()
        self.trainer_s: float | None = None
        self.sync_s: float | None = None
        self.spent = {"step": 0.0, "sync": 0.0, "wait": 0.0}
        self.trained = 0
        self.numbers: list[tuple[float, dict[str, float]]] = []
        for number in range(setting.prompts * (steps + setting.staleness + 4)):
            self.tell(Offered(group=str(number)))
        self.tell(TrainerFree())
        while len(self.numbers) < steps:
            self.tick()

    @property
    def steps_per_h(self) -> float:
        """From a quarter of it on."""
        times = [at_s for at_s, _ in self.numbers][len(self.numbers) // 4 :]
        return 3600 * (len(times) - 1) / (times[-1] - times[0])

    def tell(self, event: Event) -> None:
        for decision in self.scheduler.on(event, self.now_s):
            if isinstance(decision, Start):
                self.trials[decision.sample] = self.trial()
                self.tell(Started(sample=decision.sample, version=self.scheduler.version))
            elif isinstance(decision, Batch):
                taken = [each for group in decision.groups for each in group.samples]
                self.trained = sum(self.tokens[each] for each in taken)
                self.trainer_s = FIXED_S + TOKEN_S * self.trained

    def trial(self) -> Trial:
        """Starts, turns with a tool each, grading: about 0.8 of what it waits for is computing."""
        between, turns = self.draw.uniform, self.draw.randint(2, 6)
        parts = [("compute", between(0.3, 0.7)), ("wait", between(0.05, 0.2))]
        for _ in range(turns):
            parts.append(("sample", SAID))
            parts += [("compute", between(0.2, 0.45)), ("wait", between(0.02, 0.2))]
        parts.append(("compute", between(0.4, 0.8)))
        return Trial(deque(parts), turns, self.now_s, left=parts[0][1])

    def tick(self) -> None:
        sampling = [] if self.sync_s is not None else self.take_turns()
        computing = [] if self.sync_s is not None else list(self.turns)
        wanted = len(computing) + bool(sampling) + 2 * (self.trainer_s is not None)
        share = min(1.0, CORES / wanted) if wanted else 1.0
        self.now_s += TICK_S
        if self.sync_s is None:
            rate = share / (STEP_S + SEQUENCE_S * len(sampling))
            self.go_on(dict.fromkeys(computing, share) | dict.fromkeys(sampling, rate))
        self.train(share)

    def take_turns(self) -> list[SampleId]:
        """Those that an engine works for; of those that compute, a few have a turn."""
        for sample, trial in self.trials.items():
            if trial.kind != "compute":
                self.turns.discard(sample)
            elif sample not in self.turns and sample not in self.queue:
                self.queue.append(sample)
        while len(self.turns) < TURNS and self.queue:
            self.turns.add(self.queue.popleft())
        return [sample for sample, trial in self.trials.items() if trial.kind == "sample"]

    def go_on(self, rates: dict[SampleId, float]) -> None:
        for sample, trial in list(self.trials.items()):
            rate = 1.0 if trial.kind == "wait" else rates.get(sample, 0.0)
            trial.left -= TICK_S * rate
            if trial.left <= 0:
                self.next_part(sample, trial)

    def next_part(self, sample: SampleId, trial: Trial) -> None:
        kind, _ = trial.parts.popleft()
        if kind == "sample":
            trial.requests.append((trial.asked_s - trial.began_s, self.now_s - trial.asked_s))
        if trial.parts:
            trial.left, trial.asked_s = trial.parts[0][1], self.now_s
            return
        del self.trials[sample]
        self.turns.discard(sample)
        self.tokens[sample] = trial.tokens
        self.ended.append((sample, trial, self.now_s))
        reward = self.draw.random()
        self.tell(Ended(sample=sample, outcome="valid", tokens=trial.tokens, reward=reward))

    def train(self, share: float) -> None:
        if self.trainer_s is not None:
            self.spent["step"] += TICK_S
            self.trainer_s -= TICK_S * share
            if self.trainer_s <= 0:
                self.trainer_s, self.sync_s = None, SYNC_S
                self.tell(Updated())
        elif self.sync_s is not None:
            self.spent["sync"] += TICK_S
            self.sync_s -= TICK_S
            if self.sync_s <= 0:
                self.stepped()
        else:
            self.spent["wait"] += TICK_S

    def stepped(self) -> None:
        self.sync_s = None
        told = {f"seconds/{name}": value for name, value in self.spent.items()}
        told |= {"seconds/total": sum(self.spent.values()), "tokens/all": self.trained}
        self.numbers.append((self.now_s, told | {"reward/fault_share": 0.0}))
        self.spent = dict.fromkeys(self.spent, 0.0)
        self.tell(Synced(version=self.scheduler.version))
        self.tell(TrainerFree())

    # --- what it leaves ---------------------------------------------------------------------------

    def leave(self, run: Path) -> Path:
        """A run's directory."""
        written(run / "trajectories", [self.row(*each) for each in self.ended])
        times = iter(UNIX_S + at_s for at_s, _ in self.numbers)
        with Metrics(run / METRICS, clock=lambda: next(times)) as metrics:
            for step, (_, told) in enumerate(self.numbers, 1):
                metrics.log(step, told)
        (run / "run.json").write_text(json.dumps({"machine": "Linux x86_64, 2 cores"}))
        setting = self.setting
        (run / "config.toml").write_text(
            f"[batch]\nprompts = {setting.prompts}\nsamples = {setting.samples}\n"
            "micro_batch_tokens = 8192\n"
            f"[rollout]\nconcurrency = {setting.concurrency}\ncontext_tokens = 8192\n"
            f"at_work = {TURNS}\n"
            f"[buffer]\nstaleness = {setting.staleness}\n"
        )
        return run

    def row(self, sample: SampleId, trial: Trial, ended_s: float) -> Trajectory:
        return row(
            sample.group,
            sample.place,
            began=UNIX_S + trial.began_s,
            turns=trial.requests,
            said=SAID,
            seconds=ended_s - trial.began_s,
        )
