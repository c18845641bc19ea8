# SPDX-License-Identifier: Apache-2.0
"""What readers produce and detectors consume.

A `Run` is one recorded attempt at one task. It keeps typed evidence (flags, fields, exit codes,
positions), so that no detector has to search text. Steps are 0-based message indices of the file
named in `Run.file`, the same numbers a person sees when opening it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Owner(StrEnum):
    """Whose doing a finding is. Decided over the corpus; `UNKNOWN` until then, never `MODEL`."""

    MODEL = "model"
    ENVIRONMENT = "environment"
    """The box, its programs and packages, and the servers in it."""
    HARNESS = "harness"
    """The loop around the model: tool schemas, parsers, rules of submission, who gets graded."""
    ENGINE = "engine"
    VERIFIER = "verifier"
    JUDGE = "judge"
    TASK = "task"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """How much a finding matters to a training run."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Channel(StrEnum):
    """By what a tool said that it failed; never by words somewhere in its text."""

    FLAG = "flag"
    """`isError` and its spellings."""
    SUCCESS = "success"
    """`success` or `ok` is false."""
    ERROR = "error"
    """A non-null top-level `error`."""
    STATUS = "status"
    """`status` is `error`, with a message beside it."""
    EXIT = "exit"
    """A non-zero exit code."""
    MESSAGE = "message"
    """The whole result is an error message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a call failed, in the tool's own words."""

    channel: Channel
    text: str
    """What the tool said, unmasked; goes through `text.shown` before anybody sees it."""
    cause: str
    """The part of it that names the cause: the exception line, the shell's complaint."""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call and what came back."""

    tool: str
    operation: str
    """The action a many-in-one tool was asked for; empty for a tool that does one thing."""
    arguments: str
    """JSON text as recorded."""
    parsed: Any
    """The same, read; the text itself when it is no JSON."""
    message: int
    """Index of the message that holds the call."""
    step: int
    """Index of the message that holds the result; the call's own when there is none."""
    answered: bool
    text: str
    """The result's text."""
    failure: Failure | None
    file: str = ""
    """Where the messages are when not in `Run.file`: a trial of several steps has several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFault:
    """A typed exception on the record of a run."""

    code: str
    owner: Owner
    message: str
    reward_valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the record says about grading."""

    source: str
    """The file it was read from, or would have been."""
    reward: float | None = None
    problem: str = ""
    """Why there is no verdict; empty when there is one."""
    valid: bool | None = None
    """What the record says about the reward; None where it says nothing."""

    @property
    def graded(self) -> bool:
        """Whether somebody graded the run."""
        return not self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recorded attempt."""

    id: str
    file: str
    """Path under the audited directory; what citations name."""
    task: str
    form: str
    """`openai`, `atif`, `harbor` or `trajectory`."""
    calls: tuple[Call, ...] = ()
    has_calls: bool = True
    """False where nothing recorded the agent's calls, so that their absence means nothing."""
    turns: int = 0
    turn_cap: int | None = None
    answered: bool | None = None
    """Whether the agent handed in an answer; None where the form cannot tell."""
    last_step: int | None = None
    stop: str = ""
    """Why it ended, of `envkit.audit.own.STOPS`; empty where the record does not say."""
    verdict: Verdict | None = None
    """None where nothing says that the run was to be graded."""
    faults: tuple[RunFault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a detector found, with its citation."""

    detector: str
    severity: Severity
    owner: Owner
    run: str
    task: str
    file: str
    step: int | None
    tool: str
    fingerprint: str
    evidence: str
    """At most 300 characters, already safe to show."""
    confidence: float
    subject: str = ""
    """What the corpus step groups by: a module, a program, a tool."""
    recovered: bool | None = None
    """Whether the agent got past it; None where that has no meaning."""
    count: int = 1
    """Calls this finding stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A candidate that could not be read."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """Files that are not runs, counted."""

    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A tool result, unwrapped."""

    text: str = ""
    failure: Failure | None = None
