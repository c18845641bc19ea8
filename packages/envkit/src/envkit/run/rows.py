# SPDX-License-Identifier: Apache-2.0
"""From a trial that ended to its row: the episode that its process left, and what it was worth.

Contract: every trial that ended has a row, and no more than its own last attempt is in it. Without
an episode, or with one that is not what was written, the row has no tokens and its reward is not
valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from envkit import __version__
from envkit.agent.hear import keep_copy
from envkit.agent.loaded import Voice
from envkit.agent.settings import ModelSettings
from envkit.fault import HarnessError, Phase, classify
from envkit.trajectory.episode_file import EPISODE_NAME, read_episode
from envkit.trajectory.errors import BrokenInvariant, TrajectoryError
from envkit.trajectory.types import Episode, Identity, Limits, Trajectory
from envkit.trial.joined import join, nothing_seen
from envkit.trial.record import TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is the same for all rows of a run, or of a task."""

    identity: Identity
    """Of a trial whose loop never began."""
    limits: Limits
    tasks: Mapping[str, str]
    """Digests, by trial."""
    groups: Mapping[str, str] = field(default_factory=dict[str, str])
    """By trial; of one that is not named, what its own name begins with."""
    model_digest: str = ""
    """Of the weights that the engine samples with, where they are known."""

    def row(self, record: TrialRecord) -> Trajectory:
        """The row of a trial.

        Raises:
            OSError: its episode is there and cannot be read.
        """
        return self._joined(*self._seen(record))

    def row_without(self, record: TrialRecord, broken: BrokenInvariant) -> Trajectory:
        """The row of a trial that cannot have been as its record and its episode say it was."""
        bare = replace(
            record,
            reward=None,
            reward_valid=False,
            verdict="no_verdict",
            fault=classify(broken, Phase.ACT),
            attempts=(),
        )
        return self._joined(bare, self.identity, nothing_seen(self.limits))

    def _joined(self, record: TrialRecord, identity: Identity, episode: Episode) -> Trajectory:
        digest = identity.engine.model_digest or self.model_digest
        engine = replace(identity.engine, model_digest=digest)
        task_digest = self.tasks.get(record.trial_id, "")
        who = replace(identity, task_digest=task_digest, engine=engine)
        named, _, _ = record.trial_id.rpartition("__")
        group = self.groups.get(record.trial_id, named)
        return join(record, who, episode, group_id=group)

    def _seen(self, record: TrialRecord) -> tuple[TrialRecord, Identity, Episode]:
        nothing = nothing_seen(self.limits)
        try:
            return record, *read_episode(record.trial_dir / "agent" / EPISODE_NAME)
        except FileNotFoundError:
            return record, self.identity, nothing
        except TrajectoryError as error:
            fault = record.fault or classify(error, Phase.ACT)
            invalid = replace(record, reward_valid=False, fault=fault)
            return invalid, self.identity, nothing


def ground_of(
    settings: ModelSettings, voice: Voice, tasks: Mapping[str, str], model_digest: str
) -> Ground:
    """Of a run whose agents are set so."""
    template = voice.template
    identity = Identity(
        trajectory_id="",
        group_id="",
        sample=0,
        task="",
        harness=f"envkit {settings.toolbelt}",
        harness_version=__version__,
        tokenizer_digest=template.tokenizer_digest,
        template_digest=template.template_digest,
        template_family=template.family,
        sampling=settings.sampling,
    )
    return Ground(identity=identity, limits=settings.limits, tasks=tasks, model_digest=model_digest)


def keep_tokenizer(root: Path, voice: Voice) -> None:
    """Leave a copy of what text can be made of the rows' ids with.

    Raises:
        HarnessError: it cannot be written.
    """
    try:
        keep_copy(root, voice.template)
    except OSError as error:
        raise HarnessError(
            f"{error.filename or root}: {error.strerror}; make room there"
        ) from error
