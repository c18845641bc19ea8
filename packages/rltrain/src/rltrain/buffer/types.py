# SPDX-License-Identifier: Apache-2.0
"""What a scheduler is told and what it decides.

Contract: events say what has happened, decisions what is to be done. A group or a sample that is
given up is a decision with a reason, and so is waiting; nothing is told by saying nothing.

Words: a *group* is a prompt and its samples; a *place* is one of them, which *attempts* fill; the
trainer's *version* counts its updates; the *bound* of a group is the last version from which a step
may be taken on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

FEW: Final = 2
"""Fewer valid samples have no baseline."""
NO_VARIANCE: Final = 1e-6
"""A range of rewards up to this teaches nothing."""

type Outcome = Literal["valid", "own", "fault", "cancelled"]
"""How an attempt ended. ``own``: by what the model itself did, so its reward stands as any other;
``fault``: its reward is not known to be the model's; ``cancelled``: as was asked."""
type Lost = Literal["fault", "stale", "bound_wait", "few_valid", "no_variance"]
"""Why tokens are not trained on: a fault took the attempt; no step may be taken on it any more; the
trainer has waited for it long enough; its group was left with too few others, or cannot teach."""
type Begun = Literal["first", "retry", "refill"]
type Waits = Literal["at_bound", "too_few", "no_prompts"]
"""What the trainer waits for: groups that must be in this batch or no later one could take them; or
any group at all; or prompts to begin with."""
type Binds = Literal["slots", "staleness", "prompts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleId:
    """An attempt at one sample."""

    group: str
    place: int
    attempt: int


# --- what has happened ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """There is a prompt."""

    group: str
    difficulty: float | None = None
    """On any scale, where it is known before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """No further prompt is to be waited for; what is offered all the same is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An attempt has its slot, and engines hold this version."""

    sample: SampleId
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """This version sampled tokens of it."""

    sample: SampleId
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt is over and its slot free."""

    sample: SampleId
    outcome: Outcome
    tokens: int
    reward: float | None = None
    """Of ``valid`` and ``own``."""
    oldest: int | None = None
    """Version, the lowest over its trained tokens; None: the lowest that was heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerFree:
    """A batch would be taken now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """The step on the last batch is taken: the trainer's version is one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """Every engine holds at least this version."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Nothing but time."""


type Event = (
    Offered | Exhausted | Started | Sampled | Ended | TrainerFree | Updated | Synced | Passed
)


# --- what is to be done ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit:
    """A group is begun."""

    group: str
    bound: int
    """The last version that may be stepped from on it, if engines sample it as they are now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Give an attempt a slot."""

    sample: SampleId
    reason: Begun


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A place is to be filled once more: ``sample`` will be started when there is a slot."""

    sample: SampleId
    reason: Begun
    after: Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A place stays empty."""

    sample: SampleId
    reason: Lost
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """End an attempt that is under way."""

    sample: SampleId
    reason: Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseShort:
    """A group is finished with fewer samples than it was to have."""

    group: str
    valid: int
    reason: Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class DropGroup:
    """No step is taken on a group; another one takes its place."""

    group: str
    reason: Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A group in a batch."""

    group: str
    samples: tuple[SampleId, ...]
    """All valid."""
    staleness: tuple[int, ...]
    """Of each."""
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Of a batch, and of all that it was taken from."""

    batch: float | None
    population: float | None

    @property
    def bias(self) -> float | None:
        """How far the batch is above its population, as a share of it."""
        if self.batch is None or not self.population:
            return None
        return self.batch / self.population - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """A batch against the population."""

    tokens: Mean
    """Of a sample, against every valid one that has ended: at first those are the short ones."""
    reward: Mean
    """The same."""
    difficulty: Mean
    """Against every prompt that was offered."""
    unfinished: int
    """Samples that are under way, and in no figure yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Take a step on these groups, from this version."""

    version: int
    groups: tuple[Taken, ...]
    against: Against


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The trainer has nothing to do yet."""

    reason: Waits
    groups: tuple[str, ...] = ()
    """That are waited for by name."""
    until_s: float | None = None
    """When to say that time has passed, if nothing else happens before; then attempts that are
    still waited for are given up."""


type Decision = Admit | Start | Again | Leave | Cancel | CloseShort | DropGroup | Batch | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What keeps more samples from being under way."""

    binds: Binds
    running: int
    slots: int
    staleness: int
    """(S + 1) x prompts x samples, less finished samples of open groups, less buffered ones, less
    those of the step that is being taken."""
