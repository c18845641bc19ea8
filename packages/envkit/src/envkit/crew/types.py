# SPDX-License-Identifier: Apache-2.0
"""What a crew is told, and what it says: plain data that crosses a socket.

Contract: of every order one end is said, `Ended` or `Refused`; an `Ended` trial that was not
cancelled has a durable row in the store. Nothing here needs Harbor, MCP or Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.fault import HarnessError
from envkit.pace import STARTS_PER_S

SCHEMA: Final = "envkit.crew/1"
STORE: Final = "trajectories"
"""The store of a crew's rows, under its root."""
TRIALS: Final = "trials"
"""Directory of the trials' own, under the root."""
CUT_OFF: Final = "cut-off"
"""Journals of trials that were under way when a crew ended, under the root."""
LOG: Final = "crew.log"
"""What the crew's process wrote, under the root."""

type Keep = Literal["none", "faulted", "all"]
type Outcome = Literal["valid", "own", "fault", "cancelled"]
"""How a trial ended. ``own``: by what the model itself did, so its reward stands as any other;
``fault``: its reward is not known to be the model's; ``cancelled``: as was asked."""


class CrewRefused(HarnessError):
    """A crew cannot be opened as was asked: the line says what to set right."""


class CrewLost(HarnessError):
    """A crew that was open is gone, or says nothing any more; rows that were said are there."""


# --- what it is told ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewOptions:
    """What a crew is told once."""

    python: Path
    """Interpreter of the environment that has envkit with its extra ``run``."""
    root: Path
    """Directory of this node's run: the store, its trials, logs."""
    tasks: tuple[Path, ...]
    """Task directories, or directories of them."""
    agent: Mapping[str, Any]
    """As `envkit.agent.settings.ModelSettings.read` takes it; the engine's URL comes with each
    order, what else there is to say of the engine may stand here."""
    env: str = "local"
    """``local``, ``unsafe-process`` or an import path ``module:Class``."""
    env_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments of an environment of the user's own."""
    concurrency: int = 6
    """How many trials live at once; what is ordered beyond waits."""
    starts_per_s: float = STARTS_PER_S
    at_work: int | None = None
    """How many trials work at once; None for a few a core, 0 for all."""
    run_token: str = ""
    """Sixteen hex digits on every process and control group of it; empty for new ones."""
    budgets: Budgets = DEFAULT_BUDGETS
    keep_trials: Keep = "faulted"
    """Whose directories stay once their rows are durable."""
    seed: int = 0
    """Of the jitter of starts."""
    chaos: Path | None = None
    """Where `envkit.preflight.chaos.choose` left the faults that are to strike trials, by their
    ids; None for none."""
    environ: Mapping[str, str] | None = None
    """Environment of its process and of its trials'; None for this process's, without what names
    another interpreter's modules."""
    open_s: float = 1800.0
    """Until it is ready: the boxes of tasks that nobody prepared before are built."""
    silence_s: float = 60.0
    """It says its gauges every few seconds; one that is silent so long is taken for lost."""
    close_s: float = 60.0
    """For it to end all it started and itself; it is killed after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOrder:
    """One trial: one attempt, whatever becomes of it."""

    trial_id: str
    """Its row's id, so new in the store; a file name as well."""
    group_id: str
    sample: int
    task: str
    """Its directory, or the name of that."""
    engine: str
    """URL."""
    model: str = ""
    """Name it is served by; empty for the first that the engine lists."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """In place of the same ones of the crew's agent."""
    resume_from: str = ""
    """A directory of `Ready.resumable`: of an attempt that was killed, which this one goes on with.
    Where it cannot, it starts over, and that is said."""


# --- what it says ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Trials may begin."""

    run_token: str
    pid: int
    version: str
    """Of its envkit."""
    store: str
    rows: int
    """That were in the store."""
    cut_off: tuple[str, ...]
    """Trials that the crew before had under way: nothing of them is left but their journals."""
    resumable: Mapping[str, str]
    """Of these and of those that the one before it had: what an order can resume from, by trial."""
    tokenizer_digest: str
    template_digest: str
    template_family: str
    tasks: Mapping[str, str]
    """Digests, by the tasks' directories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A trial has its slot, and its process is being forked; once more where it starts over."""

    trial: str
    at: float
    """Unix time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """A trial that was to go on where it was killed starts over, for what stands in ``line``."""

    trial: str
    tokens: int
    """Of the stream that is given up: long ones are lost more often, which is a bias."""
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A trial entered a phase, as `envkit.preflight.types.PHASES` has them."""

    trial: str
    phase: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A trial is over: its row is durable, or, where it was cancelled, nothing of it is left."""

    trial: str
    group: str
    sample: int
    outcome: Outcome
    reward: float | None = None
    fault: str = ""
    """Its code, empty where there is none."""
    fault_owner: str = ""
    fault_message: str = ""
    stop: str = ""
    """Why the episode ended; empty where it was cancelled."""
    tokens: int = 0
    sampled_tokens: int = 0
    oldest: int | None = None
    """The lowest version of the weights that sampled it; None where nothing was sampled."""
    newest: int | None = None
    turns: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """By phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """A reading of the crew, every few seconds."""

    under_way: int
    """Trials that were ordered and have not ended, those that wait for a slot among them."""
    acting: int
    """Of these, those that have a process."""
    starting: int
    """Of these, those that are on their way up."""
    live: int
    """Boxes alive whose gateway has answered."""
    memory_mib: float
    """Memory that is in use on this machine beyond what was when the crew opened."""
    stall_ms: float
    """By how much its loop came late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An order that is not carried out."""

    trial: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Worth a line to whoever watches, and no trial's."""

    line: str


type CrewEvent = Begun | Restarted | Phase | Ended | Gauges | Refused | Notice
