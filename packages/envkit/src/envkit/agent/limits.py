# SPDX-License-Identifier: Apache-2.0
"""What an episode may still use, and what of it is the model's own.

Contract: time is the model's own while it is sampled from and while its calls work; waiting for
the engine's queue, for a turn on this machine or for a tool that somebody else spoiled is nobody's.
Each limit has a stop of its own. The context's nudge is given once, and never in an evaluation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from envkit.agent.types import Observation, Sampled
from envkit.fault.classify import OWN_SHARE
from envkit.trajectory.types import Limits, Stop, Used

type Clock = Callable[[], float]


@dataclass(slots=True, kw_only=True)
class Account:
    """Of one episode; ``clock`` gives seconds from anywhere."""

    limits: Limits
    evaluation: bool = False
    clock: Clock = time.monotonic
    used: Used = field(default_factory=Used)
    _began: float = field(init=False)
    _calling_since: float | None = None

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the episode began."""
        return self.clock() - self._began

    def may_sample(self, length: int) -> Stop | None:
        """What forbids another turn after a stream of so many tokens."""
        return Stop.CONTEXT if self.room(length) < 1 else self.after_turn()

    def may_call(self) -> Stop | None:
        """What forbids another tool call; an answer may still follow the last one."""
        up = self.limits.tool_calls and self.used.tool_calls >= self.limits.tool_calls
        return Stop.TURN_CAP if up else self._time_is_up()

    def after_turn(self) -> Stop | None:
        """What forbids another turn, whatever the stream is like."""
        up = self.limits.turns and self.used.turns >= self.limits.turns
        return Stop.TURN_CAP if up else self._time_is_up()

    def _time_is_up(self) -> Stop | None:
        up = self.limits.own_s and self.used.own_s >= self.limits.own_s
        return Stop.TIMEOUT if up else None

    def room(self, length: int) -> int:
        """How many tokens the context takes after so many."""
        return self.limits.context_tokens - length

    def sample_tokens(self, length: int) -> int:
        """How many tokens the next turn may have."""
        room = self.room(length)
        return min(room, self.limits.tokens_per_turn) if self.limits.tokens_per_turn else room

    def observation_tokens(self, length: int) -> int:
        """How many tokens the observations of a turn may take: a whole turn must fit after them.

        Where the context is too small for that, they get half of what is left of it.
        """
        room = self.room(length)
        turn = self.limits.tokens_per_turn or room
        return max(room - turn, room // 2)

    def ends_context(self, length_before: int, sampled: int) -> bool:
        """Whether a turn that began there and ran to its limit used up the context.

        It did also where the engine allowed it less than this account does.
        """
        turn = self.limits.tokens_per_turn
        return not turn or sampled < turn or self.room(length_before) <= turn

    def sampled(self, sampled: Sampled) -> None:
        """A turn was sampled."""
        self._add(
            turns=1,
            sampled_tokens=len(sampled.token_ids),
            own_s=max(0.0, sampled.seconds - sampled.queued_s),
            waited_s=sampled.queued_s,
        )

    def calls(self) -> float:
        """A call begins now; seconds since the episode did."""
        self._calling_since = self.elapsed_s
        return self._calling_since

    def called(self, observation: Observation) -> None:
        """A call came back."""
        self._calling_since = None
        owned = observation.model_owned
        self._add(tool_calls=1, **{"own_s" if owned else "waited_s": observation.seconds})

    def aged(self, seconds: float) -> None:
        """The episode is so much older: what was sampled before it was killed took its time."""
        self._began -= seconds

    def waited(self, seconds: float) -> None:
        """The episode waited for something that is not the model's."""
        self._add(waited_s=seconds)

    def repair(self) -> bool:
        """Take one of the repairs; False where none is left."""
        if self.limits.repairs and self.used.repairs >= self.limits.repairs:
            return False
        self._add(repairs=1)
        return True

    def nudge_is_due(self, length: int) -> bool:
        """Whether a stream of so many tokens leaves so little room that the model is to know."""
        if self.evaluation or self.used.nudged_at is not None or not self.limits.nudge_ratio:
            return False
        return self.room(length) <= self.limits.nudge_ratio * self.limits.context_tokens

    def nudged(self, turn: int) -> None:
        """It was told, after this turn; never again."""
        self.used = replace(self.used, nudged_at=turn)

    def cut_short(self) -> Stop:
        """Why an episode ended that was cancelled: its own time was up, or it was not its doing.

        A call that was under way is the model's own: a command without an end is no place to hide.
        """
        now, since = self.elapsed_s, self._calling_since
        if since is not None:
            self._calling_since = None
            self._add(own_s=now - since)
        return Stop.TIMEOUT if self.used.own_s >= OWN_SHARE * now > 0 else Stop.FAULT

    def _add(self, **more: float) -> None:
        self.used = replace(
            self.used, **{name: getattr(self.used, name) + value for name, value in more.items()}
        )
