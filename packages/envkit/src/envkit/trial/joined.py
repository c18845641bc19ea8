# SPDX-License-Identifier: Apache-2.0
"""What the loop saw and what became of the trial, as one trajectory.

Contract: every trial that ended has one, also where the loop never began. Its reward is valid only
where the record says so, the loop does not say otherwise, and the model sampled something that it
could be for; live for the loss is what is valid, until a trainer filters it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from envkit.fault import Fault
from envkit.trajectory.types import (
    AttemptNote,
    Episode,
    FaultNote,
    Identity,
    Limits,
    Outcome,
    Stop,
    Stream,
    Trajectory,
    Used,
)
from envkit.trial.record import Attempt, TrialRecord, decided_by

UNNAMED: Final = FaultNote(
    code="UnnamedFault",
    owner="unknown",
    phase="act",
    message="the loop did not end by itself, and no record says why",
)


def join(
    record: TrialRecord, identity: Identity, episode: Episode, *, group_id: str = ""
) -> Trajectory:
    """The trajectory of a trial; samples of its task are one group unless told otherwise."""
    who = replace(
        identity,
        trajectory_id=record.trial_id,
        group_id=group_id or record.task,
        sample=record.sample,
        task=record.task,
    )
    outcome = outcome_of(record, episode.stop)
    if not episode.used.sampled_tokens:
        outcome = replace(outcome, reward_valid=False, loss_live=False)
    return Trajectory(identity=who, episode=episode, outcome=outcome)


def outcome_of(record: TrialRecord, stop: Stop) -> Outcome:
    """What a trial was worth whose loop ended so."""
    fault = note_of(record.fault)
    if stop is Stop.FAULT and fault is None:
        fault = UNNAMED
    valid = record.reward_valid and (fault is None or fault.owner == "model")
    last = record.attempts[-1] if record.attempts else None
    return Outcome(
        reward=record.reward,
        reward_valid=valid,
        loss_live=valid,
        rewards=dict(last.rewards) if last else {},
        verdict=record.verdict,
        fault=fault,
        attempts=tuple(_attempt(each) for each in record.attempts),
        phases=dict(last.phases) if last else {},
    )


def nothing_seen(limits: Limits) -> Episode:
    """The episode of a trial whose loop never began."""
    ids, mask = np.zeros(0, np.int32), np.zeros(0, np.bool_)
    stream = Stream(
        token_ids=ids,
        loss_mask=mask,
        logprobs=np.zeros(0, np.float32),
        weight_version=ids,
        segments=(),
    )
    return Episode(stream=stream, stop=Stop.FAULT, limits=limits, used=Used())


def note_of(fault: Fault | None) -> FaultNote | None:
    """A fault as plain data."""
    if fault is None:
        return None
    return FaultNote(
        code=fault.code,
        owner=fault.owner.value,
        phase=fault.phase.value,
        message=fault.message,
    )


def _attempt(attempt: Attempt) -> AttemptNote:
    return AttemptNote(
        number=attempt.number,
        started_at=attempt.started_at,
        seconds=sum(attempt.phases.values()),
        reward=attempt.reward,
        reward_valid=attempt.reward_valid,
        fault=note_of(decided_by(attempt.faults)),
    )
