# SPDX-License-Identifier: Apache-2.0
"""What a trial leaves behind, in the form preflight, audit and trainers read.

Contract: a record is plain data that survives JSON without loss. ``reward`` is ``None`` when
nothing was graded; ``reward_valid`` is true only when a reward exists *and* no fault of anybody
but the model stands against it. Every attempt is kept, the failed ones too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

import orjson

from envkit.durable import sync_directory, write_durably
from envkit.fault import Fault, Owner, Phase, Policy

RECORD_NAME: Final = "envkit.json"
"""File name of a record inside its trial directory."""

ATTEMPT_NAME: Final = "attempt.json"
"""File name of one attempt inside its trial directory."""

TAKEN_NAME: Final = "taken.json"
"""File name of an attempt as whoever ran it took it in, before it runs another.

Not what the attempt says of itself: the trials of a run that is killed see their boxes die, and
write that down as a fault that nobody but the kill is the cause of."""

SCHEMA: Final = "envkit.trial/1"

Verdict = Literal["graded", "no_verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What one run of the verifier came to."""

    reward: float | None
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    fault: Fault | None = None
    """Why there is no reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a trial from start to teardown."""

    number: int
    """Counts from 1."""
    started_at: float
    """Unix time in seconds."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds by phase, in the order they ran: start, gateway, setup, act, collect, grade, stop."""
    reward: float | None = None
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    """Every named reward of the verifier, criteria included."""
    reward_valid: bool = False
    faults: tuple[Fault, ...] = ()
    """The first is the one that decided; teardown faults follow."""
    cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """CPU seconds by part: trial (host side), boxes (gateway, agent code, verifier), and forks:
    what entered the boxes to start commands and carry files."""
    cpu_by_phase: Mapping[str, float] = field(default_factory=dict[str, float])
    """CPU seconds by phase of all parts together, as far as they can be read while it runs."""
    peak_memory_mib: float = 0.0
    """Largest resident memory seen: host process plus the cgroups of its boxes."""
    tool_calls: int = 0
    tools: tuple[str, ...] = ()
    """Names of the tools that its servers listed, where they were asked."""
    grades: tuple[Grade, ...] = ()
    """The reward of record and that of a second grading, where there was one."""
    searched: int = 0
    """How often its boxes were searched for what other trials made."""
    unsearched: int = 0
    """How often that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A trial with all its attempts; the last attempt decides."""

    trial_id: str
    task: str
    sample: int
    """Which repetition of the task, from 0."""
    agent: str
    attempts: tuple[Attempt, ...]
    verdict: Verdict
    reward: float | None
    reward_valid: bool
    fault: Fault | None
    """Why the reward is not valid, or what the model caused; ``None`` for a clean trial."""
    trial_dir: Path
    seconds: float
    """Wall clock of all attempts, waiting between them included."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, with the schema name."""
        return {"schema": SCHEMA, **asdict(self), "trial_dir": str(self.trial_dir)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back :meth:`to_dict`.

        Raises:
            ValueError: the schema is of another major version or a field is missing.
        """
        schema = data.get("schema")
        if schema != SCHEMA:
            raise ValueError(f"trial record: schema is {schema!r}, this version reads {SCHEMA!r}")
        try:
            fields = {key: data[key] for key in cls.__slots__}
            fields["attempts"] = tuple(attempt_from_dict(item) for item in data["attempts"])
            fields["fault"] = _fault(data["fault"]) if data["fault"] else None
            fields["trial_dir"] = Path(data["trial_dir"])
            return cls(**fields)
        except (KeyError, TypeError) as error:
            raise ValueError(f"trial record: field {error} is missing or malformed") from error


def decided_by(faults: tuple[Fault, ...]) -> Fault | None:
    """The fault that stands on a record: what invalidates first, else what the model caused."""
    invalid = [fault for fault in faults if not fault.policy.reward_valid]
    own = [fault for fault in faults if fault.owner is Owner.MODEL]
    return next(iter([*invalid, *own]), None)


def write_record(record: TrialRecord) -> None:
    """Leave a record in its trial directory, for good when this returns.

    A reader never sees half of one, and a run that is killed need not repeat the trial.
    """
    data = orjson.dumps(record.to_dict(), option=orjson.OPT_INDENT_2)
    write_durably(record.trial_dir / RECORD_NAME, data)
    sync_directory(record.trial_dir.parent)


def read_record(path: Path) -> TrialRecord:
    """Read back :func:`write_record`; the record's directory is the one it lies in now.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no record of a trial.
    """
    try:
        data = {**orjson.loads(path.read_bytes()), "trial_dir": str(path.parent)}
    except TypeError as error:
        raise ValueError(f"{path}: no record of a trial") from error
    return TrialRecord.from_dict(data)


def write_attempt(trial_dir: Path, attempt: Attempt) -> None:
    """Leave an attempt in its trial directory, where the launcher reads it."""
    trial_dir.mkdir(parents=True, exist_ok=True)
    _write(trial_dir / ATTEMPT_NAME, attempt_to_dict(attempt))


def write_taken(trial_dir: Path, attempt: Attempt) -> None:
    """Keep that an attempt ended, where another one of its trial follows."""
    trial_dir.mkdir(parents=True, exist_ok=True)
    _write(trial_dir / TAKEN_NAME, attempt_to_dict(attempt))


def _write(path: Path, data: Mapping[str, Any]) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2))
    part.replace(path)


def attempt_to_dict(attempt: Attempt) -> dict[str, Any]:
    """JSON-ready form of one attempt."""
    return asdict(attempt)


def attempt_from_dict(data: Mapping[str, Any]) -> Attempt:
    """Read back :func:`attempt_to_dict`."""
    fields: dict[str, Any] = {**data, "faults": tuple(_fault(item) for item in data["faults"])}
    fields["tools"] = tuple(data.get("tools", ()))
    fields["grades"] = tuple(_grade(item) for item in data.get("grades", ()))
    return Attempt(**fields)


def _grade(data: Mapping[str, Any]) -> Grade:
    fault = _fault(data["fault"]) if data["fault"] else None
    return Grade(reward=data["reward"], rewards=data["rewards"], fault=fault)


def _fault(data: Mapping[str, Any]) -> Fault:
    return Fault(
        code=data["code"],
        owner=Owner(data["owner"]),
        phase=Phase(data["phase"]),
        policy=Policy(**data["policy"]),
        message=data["message"],
    )
