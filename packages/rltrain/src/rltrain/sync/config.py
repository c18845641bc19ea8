# SPDX-License-Identifier: Apache-2.0
"""How weights travel to engines, how long each part may take, and what is then compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from rltrain.policy.config import Dtype

type Method = Literal["auto", "gloo", "nccl", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryConfig:
    """What engines and the trainer score after each sync, and how far apart they may be."""

    sequences: int = 4
    """Fixed ones, of ids drawn at random: they touch rows that a policy seldom does."""
    tokens: int = 128
    """Of each."""
    recent: int = 512
    """Trajectories at most, the newest ones; none of them need be there for the first sync."""
    bound: float = 0.0
    """Nats: mean of \\|trainer - engine\\| over tokens; 0 for what the computation allows: 1e-4 in
    float32, 0.03 in bfloat16."""
    score_s: float = 600.0
    """For an engine to score all of them, beside its trials."""

    def __post_init__(self) -> None:
        if self.sequences < 1 or self.tokens < 2 or self.recent < 0:
            raise ValueError("sequences at least 1, of 2 tokens or more, and recent not below 0")
        if self.bound < 0 or self.score_s <= 0:
            raise ValueError("bound not below 0, and score_s above it")

    def bound_of(self, dtype: Dtype) -> float:
        """How far apart they may be where one of the two computes in this."""
        return self.bound or (0.03 if dtype == "bfloat16" else 1e-4)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncConfig:
    """The defaults are right for one machine, with GPUs and without."""

    method: Method = "auto"
    """``auto``: ``nccl`` where the trainer has a GPU, else ``gloo``; ``file`` where engines and
    trainer share nothing but a file system."""
    address: str = "127.0.0.1"
    """Of the trainer's rank 0, as engines reach it."""
    directory: str = ""
    """Where ``file`` writes; engines see it under the same name."""
    bucket_mib: int = 256
    """Sent at a time. Trainer and engine hold two of it beside their weights."""
    transformed: tuple[str, ...] = ()
    """Endings of names of tensors that the engine keeps otherwise than it is sent them, so that
    what it holds cannot be compared; any other such tensor is an error."""
    join_s: float = 120.0
    """For an engine and the trainer to meet."""
    pause_s: float = 120.0
    """The step that an engine is in ends first, which may be the prefill of a long prompt."""
    control_s: float = 120.0
    """Beginning and ending of an update, where layers are put into the kernels' own layout and then
    compared with what was sent."""
    transfer_s: float = 300.0
    """Of one bucket."""
    canary: CanaryConfig = field(default_factory=CanaryConfig)

    def __post_init__(self) -> None:
        if self.method not in (known := get_args(Method.__value__)):
            raise ValueError(f"method: there is no {self.method!r}; there are {', '.join(known)}")
        if self.method == "file" and not self.directory:
            raise ValueError("directory: method file needs one that engines see too")
        if self.bucket_mib < 1:
            raise ValueError(f"bucket_mib: {self.bucket_mib} is below 1")
        for name in ("join_s", "pause_s", "control_s", "transfer_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}: {getattr(self, name):g} is not above 0")
