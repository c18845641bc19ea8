# SPDX-License-Identifier: Apache-2.0
"""Carriers of a preflight: what a launcher is given, what it says, what a report is made of.

Contract: a launcher yields exactly one ``TrialEnded`` for every spec it was given, whatever went
wrong in that trial; a spec without one is reported as a harness fault, never dropped. Times are
seconds unless a name says otherwise; memory is MiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.pace import STARTS_PER_S
from envkit.trial.load import NO_LOAD, LoadShape
from envkit.trial.record import Attempt, TrialRecord

SCHEMA: Final = "envkit.preflight/1"

PHASES: Final = (
    *("start", "gateway", "setup", "hold", "turn", "idle", "think", "act", "collect", "grade"),
    *("regrade", "stop"),
)
"""The phases of a trial, as reports list them; a phase not named here follows.

``hold`` is the wait for the others at the barrier, ``turn`` that for cores before the agent begins.
``idle`` and ``think`` are time that was asked for: a trial that waits for its engine, and pauses
between the calls of a replay. ``regrade`` is a second grading."""


# --- what is run ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """One trial to run: one sample of one task by one agent in one environment."""

    trial_id: str
    """``<task>__<sample>``: safe as a file name, the same for the same plan, in it only once."""
    task_dir: Path
    sample: int
    agent: str
    """``replay``, ``oracle``, ``nop``, ``model`` or an import path ``module:Class``."""
    out_dir: Path
    """The directory in which the launcher makes this trial's own directory."""
    env: str
    """``local``, ``unsafe-process`` or an import path ``module:Class``."""
    load: LoadShape = NO_LOAD
    """What it does beside its task."""
    agent_args: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Keyword arguments of ``model``, or of an agent of the user's own."""
    env_args: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Keyword arguments of an environment of the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `envkit.preflight.launcher.launcher` needs beyond the specs."""

    concurrency: int
    """How many trials live at once."""
    out_dir: Path
    run_token: str
    """On every process, cgroup, mount and stage of this run; leaks are counted by it."""
    barrier: bool = True
    """Hold the first wave until ``concurrency`` boxes live with answering gateways."""
    seed: int = 0
    """Seeds the jitter of starts and retries, so that a run can be repeated."""
    starts_per_s: float = STARTS_PER_S
    """How many attempts begin a second, at most."""
    turns: int | None = None
    """How many trials work at once; None for a few a core, 0 for all."""
    budgets: Budgets = DEFAULT_BUDGETS
    chaos: Path | None = None
    """Where `envkit.preflight.chaos.choose` left the faults that are to strike; None for none."""
    earlier: Mapping[str, tuple[Attempt, ...]] = field(
        default_factory=dict[str, tuple[Attempt, ...]]
    )
    """By trial: attempts that had ended when an earlier process of this run was killed."""


# --- what a launcher says ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """An attempt's slot was taken; said once a trial, before its first phase."""

    trial_id: str
    task: str
    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPhase:
    """The trial entered a phase: start, gateway, setup, act, collect, grade or stop."""

    trial_id: str
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """The trial is over, with every attempt on its record."""

    record: TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCancelled:
    """The trial was ended as was asked: nothing of it runs, and it has no record."""

    trial_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGauges:
    """A reading of the whole run, taken at a steady interval."""

    live_boxes: int
    """Boxes alive whose gateway has answered."""
    loop_stall_ms: float
    """The longest time the event loop was blocked since the last reading."""
    memory_mib: float
    """Memory of all processes of the run together."""
    shared_cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """CPU seconds so far, by name, of processes that work for all trials and belong to none."""
    cpu_is_live: bool = True
    """Control groups tell what boxes use while they live; else it is known when they end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something worth a line to whoever watches, that is no trial's."""

    line: str


type Event = Notice | TrialStarted | TrialPhase | TrialEnded | RunGauges
type FloorEvent = Event | TrialCancelled


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Leftover:
    """Something a run made that is still there."""

    kind: str
    """``process``, ``mount``, ``cgroup``, ``file``; ``uncounted`` where counting itself failed."""
    what: str
    """A process id and its command, a mount point, a path."""


LEAK_NAMES: Final = {
    "process": "processes",
    "mount": "mounts",
    "cgroup": "cgroups",
    "file": "files",
    "uncounted": "uncounted",
}
"""Each kind of leftover, and its plural: the key of its count in a report."""


class Launcher(Protocol):
    """Runs trials; the only part of a preflight that touches sandboxes."""

    def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Runs every spec. Closing the generator kills what still runs and cleans up."""
        ...

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now. Asked before the run and after it."""
        ...


class View(Protocol):
    """Shows a run while it happens."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def notice(self, line: str) -> None:
        """One line about the run as a whole."""
        ...

    def event(self, event: Event) -> None:
        """Something a launcher said."""
        ...


# --- the plan ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenTask:
    """A task that is not run, and the one line that says what is wrong with it."""

    trial_id: str
    """Of the record that stands for the trials it would have had."""
    name: str
    dir: Path
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a run depends on; two equal plans run the same trials."""

    source: Path
    """The directory the user named."""
    specs: tuple[TrialSpec, ...]
    broken: tuple[BrokenTask, ...]
    agent: str
    env: str
    concurrency: int
    out_dir: Path
    run_token: str
    seed: int = 0
    max_fault_rate: float = 0.005
    """A fraction: the share of attempts that may fault."""
    starts_per_s: float = STARTS_PER_S
    turns: int | None = None
    """How many trials work at once; None for a few a core, 0 for all."""
    rerun_of: Path | None = None
    """The directory of the run whose failed trials these are."""
    chaos: Path | None = None
    """The rules by which faults are injected; None where none are."""
    gated: bool = True
    """Held to its fault rate and its concurrency; a run for its trajectories is not."""

    def __post_init__(self) -> None:
        ids = Counter(each.trial_id for each in (*self.specs, *self.broken))
        twice = [name for name, count in ids.items() if count > 1]
        assert not twice, f"two trials of one id would pass for one: {twice}"


# --- the report ----------------------------------------------------------------------------------


class Verdict(StrEnum):
    PASS = "PASS"
    """Every gate held."""
    FAIL = "FAIL"
    """A gate was breached."""
    COULD_NOT_RUN = "COULD_NOT_RUN"
    """No trial was run."""
    INTERRUPTED = "INTERRUPTED"
    """Stopped by the user; the report covers the trials that had ended."""

    @property
    def exit_code(self) -> int:
        return {"PASS": 0, "FAIL": 1, "COULD_NOT_RUN": 2, "INTERRUPTED": 130}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A point with its 95 % interval; all three are None where nothing was measured."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Nearest-rank quantiles: each is a value that was measured."""

    n: int
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewards:
    """The mean of the valid rewards, and where it would be if every invalid one were 0 or 1."""

    mean: float | None
    n: int
    """Valid rewards."""
    low: float | None
    high: float | None
    """The 95 % interval around the mean."""
    method: str
    """``Wilson`` where every reward is 0 or 1, ``t`` with partial credit, ``none`` without any."""
    all_invalid_0: float | None
    all_invalid_1: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One class of fault over the whole run."""

    code: str
    owner: str
    count: int
    """Attempts in which it happened."""
    retried: int
    """Of these, attempts that were run again."""
    example_trial: str
    example_attempt: int
    example_phase: str
    example_message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrial:
    """A trial that did not do what its agent must, and how to see it again."""

    trial_id: str
    task: str
    why: str
    reproduce: str
    trial_dir: Path
    log_tail: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One concurrency of a ramp, measured."""

    concurrency: int
    trials: tuple[str, ...]
    """Their ids."""
    valid: int
    """Trials that earned a valid reward."""
    seconds: float
    """From the first start to the last end."""
    per_s: float
    """Throughput: trials with a valid reward a second."""
    trial_s: Quantiles | None
    """Seconds a trial, without its wait at the barrier."""
    phases: Mapping[str, Quantiles]
    fault_rate: Interval
    mean_reward: float | None
    cpu_s: float
    """A trial."""
    peak_memory_mib: float | None
    """Of the whole level at its highest."""
    peak_live: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A task that was not worth the same among few trials and among many."""

    task: str
    few: tuple[float, ...]
    """Distinct valid rewards, in order."""
    many: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """The same tasks at several concurrencies, the lowest first."""

    levels: tuple[Level, ...]
    """Those that were measured to their end."""
    knee: int | None
    """The lowest concurrency with nearly the best throughput; None below two levels."""
    grows: bool
    """The knee is the highest level: throughput may grow beyond it."""
    differences: tuple[Difference, ...] = ()
    """Of the highest level from the lowest, for agents that always do the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure of an earlier run beside the same measure of this one."""

    measure: str
    """``act``, ``trial``, ``CPU``, ``memory``, ``faults``, or ``reward of <task>``."""
    unit: str
    """``s``, ``CPU s``, ``MiB``; none where both sides are shares or rewards."""
    before: float
    now: float
    """Medians of seconds, CPU seconds and MiB; means of rewards; shares of attempts."""
    n_before: int
    n_now: int
    ratio: Interval
    """Times as much as before, tasks of unlike length counted alike; None for rewards, faults."""
    p: float
    """Of so great a difference where there is none."""
    p_adjusted: float
    """The same, for all measures of the comparison together (Holm)."""
    verdict: str
    """``same``, ``better`` or ``worse``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """This run against an earlier one."""

    baseline: str
    """The file it was read from."""
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a training run would take at this concurrency; intervals are 95 %."""

    steps: int
    prompts: int
    samples: int
    concurrency: int
    """Trials that live at once: of the preflight, or of a step where that is fewer."""
    trials: int
    hours: Interval
    """Every step waits for its last trial."""
    hours_async: Interval
    """No step waits: every slot is always taken."""
    attempts: Interval
    """Those that are run again included."""
    invalid: Interval
    """Trials that end without a valid reward."""
    sandbox_hours: Mapping[str, float]
    """By kind of box: agent, gateway, verifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a task must not be trained on."""

    code: str
    """``static_checks``, ``wrong_reward``, ``reward_range``, ``faults``, ``flaky_verifier``,
    ``interference``."""
    message: str
    trials: tuple[str, ...] = ()
    """Those that show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A task that must not be trained on."""

    task: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The gauges over a stretch of a run: the highest of each."""

    at_s: float
    """The end of the stretch, from the beginning of the run."""
    live: int
    memory_mib: float
    stall_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One trial over time: from each moment on, in which phase it was."""

    trial: str
    at_s: tuple[float, ...]
    """From the beginning of the run, rising."""
    phases: tuple[str, ...]
    """As many as moments; empty from where it was in none, between attempts and at its end."""
    faults: tuple[tuple[float, str], ...] = ()
    """When an attempt ended with a fault, and its class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A run over time; bounded, however long it was and however many its trials."""

    readings: tuple[Reading, ...] = ()
    lanes: tuple[Lane, ...] = ()
    """In the order in which the trials began."""
    left_out: int = 0
    """Trials without a lane, because they were too many."""
    barriers_s: tuple[float, ...] = ()
    """When the first wave went on; of a ramp, that of each level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One phase of an attempt, or one call of a tool in it."""

    trial: str
    attempt: int
    name: str
    """Of the phase or the tool."""
    is_call: bool
    seconds: float
    ok: bool
    """The call succeeded; the attempt ended without a fault in that phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool over the whole run, as the trials' agents wrote down what they called."""

    tool: str
    failed: int
    """Calls that came back as an error, those that were recorded so included."""
    seconds: Quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task over the whole run."""

    task: str
    trials: int
    rewards: tuple[tuple[float, int], ...]
    """Each valid reward, lowest first, and how many trials earned it."""
    seconds: Quantiles | None
    """For which its trials took a slot."""
    faulted: int
    """Of its attempts."""
    graded_twice: int = 0
    graded_differently: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole result of a preflight; ``report.to_json`` gives its published form."""

    verdict: Verdict
    why: tuple[str, ...]
    plan: Plan | None
    trials: int = 0
    attempts: int = 0
    peak_live: int = 0
    seconds: float = 0.0
    rewards: Rewards = field(
        default_factory=lambda: Rewards(
            mean=None,
            n=0,
            low=None,
            high=None,
            method="none",
            all_invalid_0=None,
            all_invalid_1=None,
        )
    )
    faults: tuple[FaultRow, ...] = ()
    fault_rate: Interval = field(default_factory=lambda: Interval(value=None, low=None, high=None))
    phases: Mapping[str, Quantiles] = field(default_factory=dict[str, Quantiles])
    cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of all attempts, by part."""
    cpu_by_phase: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of all attempts, by phase: the same seconds as far as they can be read while a trial runs."""
    shared_cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of what worked for all trials and belongs to none, importing included."""
    cpu_is_live: bool = True
    """False without control groups: a box's seconds stand in the phase in which it ended."""
    peak_memory_mib: float | None = None
    """Of the whole run at its highest; None where no reading was taken."""
    loop_stall_ms: Quantiles | None = None
    leaks: tuple[Leftover, ...] = ()
    failed: tuple[FailedTrial, ...] = ()
    records: tuple[TrialRecord, ...] = ()
    resumed: int = 0
    """How often the run was killed and taken up again."""
    cut_off: int = 0
    """Attempts that were under way then, and were run again."""
    quarantine: tuple[Quarantined, ...] = ()
    ramp: Ramp | None = None
    comparison: Comparison | None = None
    estimate: Estimate | None = None
    course: Course = Course()
    tasks: tuple[TaskRow, ...] = ()
    """By name."""
    tools: tuple[ToolRow, ...] = ()
    """Those that took the most time first; none where no agent wrote its calls down."""
    slowest: tuple[Operation, ...] = ()
    """The slowest first. An act whose calls are known stands there by its calls."""
