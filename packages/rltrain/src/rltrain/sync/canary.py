# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The scores of engines against the trainer's, at the same weights, after every sync.

Engines score ids as a prompt, with a salt of its own so that nothing is read from a cache; the
trainer scores them as a training step does. What fingerprints cannot see is seen here: weights that
were wrong before they were sent, and engines that compute something else with the right ones. One
tensor that is off by 1 % before it is sent moves log-probs of small models by 5e-3
(``benchmarks/sync_faults.py``): seen in float32, and below what bfloat16 allows.

Contract: every token weighs the same. What engines do not answer is told apart from what they
answer wrong. How many tokens of how many trajectories were compared is told, for whoever must judge
whether that was enough; the difference of nothing is not zero, but absent.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from rltrain.batch.cost import Cost
from rltrain.batch.micro import joined
from rltrain.batch.pack import pack
from rltrain.batch.sample import Sample
from rltrain.policy.config import Dtype
from rltrain.policy.types import Backend
from rltrain.sync.config import CanaryConfig
from rltrain.sync.control import Control
from rltrain.sync.errors import CanaryAlarm, OperationFailed, ReplicasLost
from rltrain.sync.links import later
from rltrain.sync.probes import fixed_probes, recent_probes
from rltrain.sync.types import Outcome, Replica, State
from rltrain.sync.version import WeightVersion

type Doubles = npt.NDArray[np.float64]

BY_TOKEN: Final = Cost(a=1.0, b=0.0)
UNREADABLE: Final = (IndexError, KeyError, TypeError, ValueError)
"""What reading raises by what is not the protocol."""
CONTROL_S: Final = 30.0
"""For a question about the engine itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of \\|trainer - engine\\| in nats, over at least one token."""

    tokens: int
    trajectories: int
    mean: float
    p50: float
    p99: float
    most: float

    @classmethod
    def of(cls, differences: Sequence[Doubles]) -> Self:
        """Of some trajectories."""
        whole = np.concatenate(differences)
        with np.errstate(invalid="ignore"):  # of what is not finite there is no quantile
            p50, p99 = np.quantile(whole, [0.5, 0.99]).tolist()
        return cls(
            tokens=len(whole),
            trajectories=len(differences),
            mean=float(whole.mean()),
            p50=p50,
            p99=p99,
            most=float(whole.max()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One engine."""

    replica: str
    fixed: Figures
    recent: Figures | None
    """None where there was no trajectory yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """All engines that were asked."""

    version: WeightVersion
    bound: float
    replicas: tuple[Compared, ...]
    silent: tuple[Outcome, ...]
    """Those that did not answer, or not under this version."""
    seconds: float

    @property
    def alarms(self) -> tuple[str, ...]:
        """What lies above the bound, or is no number: a line each."""
        return tuple(
            f"replica {each.replica}: mean |trainer - engine| is {figures.mean:.2e} over"
            f" {figures.tokens:,} {what} tokens, above {self.bound:g}; p99 {figures.p99:.2e},"
            f" most {figures.most:.2e}"
            for each in self.replicas
            for what, figures in (("fixed", each.fixed), ("recent", each.recent))
            if figures is not None and not figures.mean <= self.bound
        )

    def expect_quiet(self) -> None:
        """Go on only where every engine agrees.

        Raises:
            CanaryAlarm: one does not.
            ReplicasLost: one did not answer; the others agree.
        """
        if self.alarms:
            raise CanaryAlarm(f"weights {self.version}: {self.alarms[0]}", self.silent)
        if self.silent:
            first = self.silent[0]
            line = f"weights {self.version}: replica {first}: {first.failure}"
            raise ReplicasLost(line, self.silent)


class Canary:
    """One trainer's; all its ranks call it together, with the same samples."""

    def __init__(
        self,
        config: CanaryConfig,
        *,
        vocabulary: int,
        context_tokens: int,
        dtype: Dtype,
        cap: int,
    ) -> None:
        """``cap`` is tokens of a micro-batch; ``context_tokens`` what engines take."""
        self._config, self._cap, self._context = config, cap, context_tokens
        self._bound = config.bound_of(dtype)
        self._fixed = fixed_probes(config, vocabulary, context_tokens)

    def check(
        self,
        backend: Backend,
        replicas: Sequence[Replica],
        version: WeightVersion,
        recent: Sequence[Sample] = (),
    ) -> Checked | None:
        """Compare; on rank 0 what was found, elsewhere None."""
        began = time.monotonic()
        probes = [*self._fixed, *recent_probes(recent, self._config.recent, self._context)]
        asked = []
        if backend.rank == 0:
            seconds = self._config.score_s
            asked = [later(lambda of=of: asked_of(of, probes, version, seconds)) for of in replicas]
        ours = scored(backend, probes, self._cap)
        if backend.rank != 0:
            return None
        found, silent = [], []
        for replica, answer in zip(replicas, asked, strict=True):
            try:
                theirs = answer.result()
            except OperationFailed as error:
                silent.append(Outcome(replica=replica.name, state=State.LOST, failure=str(error)))
            else:
                found.append(self._compared(replica, probes, ours, theirs))
        return Checked(
            version=version,
            bound=self._bound,
            replicas=tuple(found),
            silent=tuple(silent),
            seconds=time.monotonic() - began,
        )

    def _compared(
        self,
        replica: Replica,
        probes: Sequence[Sample],
        ours: Sequence[Doubles],
        theirs: Sequence[Doubles],
    ) -> Compared:
        apart = [
            np.abs(mine - other)[probe.mask]
            for probe, mine, other in zip(probes, ours, theirs, strict=True)
        ]
        count = len(self._fixed)
        return Compared(
            replica=replica.name,
            fixed=Figures.of(apart[:count]),
            recent=Figures.of(apart[count:]) if apart[count:] else None,
        )


def scored(backend: Backend, probes: Sequence[Sample], cap: int) -> list[Doubles]:
    """The trainer's log-probs of masked tokens, NaN elsewhere; every rank scores all probes."""
    found = [np.full(len(each), np.nan) for each in probes]
    lengths = [len(each) for each in probes]
    for bin_ in pack(lengths, BY_TOKEN, cap=max(cap, *lengths), ranks=1).ranks[0]:
        batch = joined([probes[number] for number in bin_], bin_)
        logps = backend.score(batch).logp.double().cpu().numpy()
        ends = np.cumsum([probes[number].trained for number in bin_])[:-1]
        for number, part in zip(bin_, np.split(logps, ends), strict=True):
            found[number][probes[number].mask] = part
    return found


def asked_of(
    replica: Replica, probes: Sequence[Sample], version: WeightVersion, seconds: float
) -> list[Doubles]:
    """An engine's log-probs of all their tokens, NaN for the first.

    Raises:
        OperationFailed: it does not answer, or holds another version.
    """
    control = Control(replica.url)
    try:
        choices = _choices(control, probes, seconds)
        found = [_logprobs(*each) for each in zip(choices, probes, strict=True)]
    except UNREADABLE as error:
        what = f"{type(error).__name__}: {error}"
        raise OperationFailed(f"canary: the answer cannot be read: {what}") from error
    said = control.get("canary", "/weight_info", CONTROL_S)
    if said != {"weight_version": str(version.number)}:
        raise OperationFailed(f"canary: the engine says {said}, and not version {version.number}")
    return found


def _choices(control: Control, probes: Sequence[Sample], seconds: float) -> list[Any]:
    model = control.get("canary", "/v1/models", CONTROL_S)["data"][0]["id"]
    body = {
        "model": model,
        "prompt": [probe.token_ids.tolist() for probe in probes],
        "max_tokens": 1,
        "temperature": 1.0,
        "prompt_logprobs": 0,
        "cache_salt": f"canary-{uuid.uuid4().hex}",
    }
    told = control.post("canary", "/v1/completions", seconds, body)
    return [each["prompt_logprobs"] for each in sorted(told["choices"], key=lambda c: c["index"])]


def _logprobs(told: Sequence[dict[str, Any] | None], probe: Sample) -> Doubles:
    rows = zip(told[1:], probe.token_ids[1:].tolist(), strict=True)
    logprobs = [row[str(each)]["logprob"] for row, each in rows if row is not None]
    if len(logprobs) != len(probe) - 1:
        raise ValueError(f"{len(logprobs)} log-probs of {len(probe)} tokens")
    return np.array([np.nan, *logprobs])
