# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of failure: who owns it, when it struck, what follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Owner(StrEnum):
    """Whose doing a fault is. Only what the model owns may carry a valid reward."""

    MODEL = "model"
    """The model's own action: its command hit a limit, killed its own box, never ended."""
    HARNESS = "harness"
    """The loop that drives the model, or the agent program around it."""
    SANDBOX = "sandbox"
    """The box: start, exec, transfer, and the provider behind them."""
    SERVER = "server"
    """An MCP server or the gateway that serves it."""
    ENGINE = "engine"
    """What samples the model's tokens: an inference engine or a model provider."""
    JUDGE = "judge"
    """A model that grades."""
    VERIFIER = "verifier"
    """The task's own checks and the box they run in."""
    TASK = "task"
    """The task directory: wrong on disk, so wrong every time."""
    CANCELLED = "cancelled"
    """Somebody stopped the run."""
    UNKNOWN = "unknown"
    """Nobody has claimed it yet: the reward is not to be trusted."""


class Phase(StrEnum):
    """When in a trial a fault struck."""

    START = "start"
    """The box and its servers come up."""
    SETUP = "setup"
    """The agent is made ready."""
    ACT = "act"
    """The agent works."""
    COLLECT = "collect"
    """What the agent left is carried out of the box."""
    GRADE = "grade"
    """The verifier or judge looks at it."""
    STOP = "stop"
    """Teardown."""
    RUN = "run"
    """Outside any one phase, or not known which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The three facts that follow from a fault."""

    retry: bool
    """Another attempt can succeed."""
    grade: bool
    """What the agent left is worth grading, if only to look at."""
    reward_valid: bool
    """A reward earned in spite of the fault is the model's own."""


RERUN = Policy(retry=True, grade=False, reward_valid=False)
"""Infrastructure broke before there was anything to grade."""
RERUN_GRADED = Policy(retry=True, grade=True, reward_valid=False)
"""Infrastructure broke while the agent worked: grade it to look at it, never to train on it."""
FINAL_GRADED = Policy(retry=False, grade=True, reward_valid=False)
"""Running it again gives the same; what is there may be graded or regraded."""
FINAL = Policy(retry=False, grade=False, reward_valid=False)
"""Running it again gives the same, and there is nothing to grade."""
VALID = Policy(retry=False, grade=True, reward_valid=True)
"""The model's own doing: graded as it stands, never run again."""
UNKNOWN_POLICY = RERUN_GRADED
"""Unknown faults are tried once more (`envkit.retry`), graded, and their reward is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One classified failure, as it stands on a trial's record."""

    code: str
    """Stable class name, with the operation where there is one: ``DeadlineExceeded:mcp_call``."""
    owner: Owner
    phase: Phase
    policy: Policy
    message: str

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; `from_dict` gives the same fault back."""
        return {
            "code": self.code,
            "owner": self.owner.value,
            "phase": self.phase.value,
            "retry": self.policy.retry,
            "grade": self.policy.grade,
            "reward_valid": self.policy.reward_valid,
            "message": self.message,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "Fault":
        """Read what `to_dict` wrote. Raises KeyError or ValueError on anything else."""
        return cls(
            code=str(data["code"]),
            owner=Owner(str(data["owner"])),
            phase=Phase(str(data["phase"])),
            policy=Policy(
                retry=bool(data["retry"]),
                grade=bool(data["grade"]),
                reward_valid=bool(data["reward_valid"]),
            ),
            message=str(data["message"]),
        )
