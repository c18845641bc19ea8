# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Weights to all engines: what the loop calls, on every rank of the trainer.

Contract: `sync` goes through all weights on every rank, whatever becomes of the engines, for other
ranks gather them together with rank 0. Only rank 0 speaks to engines. It returns only where every
engine that was asked holds the version and samples with it; all else is an error that says what
became of each.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from rltrain.refused import Refused
from rltrain.sync.config import SyncConfig
from rltrain.sync.errors import OperationFailed, ReplicasLost, SyncError, WrongWeights
from rltrain.sync.links import Link, later, messages
from rltrain.sync.names import checkpoint_names
from rltrain.sync.rounds import Course, Round
from rltrain.sync.types import Outcome, Replica, State, Synced
from rltrain.sync.version import WeightVersion


class Sender(Protocol):
    """The trainer's end of all syncs."""

    def join(self, replicas: Sequence[Replica]) -> None:
        """Meet engines; one of a name that is there already takes its place."""
        ...

    def leave(self, names: Sequence[str]) -> None:
        """Ask them nothing more."""
        ...

    def sync(
        self,
        weights: Iterable[tuple[str, Tensor]],
        version: WeightVersion,
        only: Sequence[str] | None = None,
        *,
        reset: bool = False,
    ) -> Synced | None:
        """Weights by the trainer's names to all engines, or to those of these names.

        ``reset`` lets nothing attend to keys and values of older weights: requests under way are
        reckoned again from their first token. Without it they go on with what they have.
        """
        ...


def open_sender(
    config: SyncConfig, replicas: Sequence[Replica], *, family: str, rank: int = 0
) -> Sender:
    """The sender of a rank of the trainer; ``family`` is the ``model_type`` of its policy.

    Raises:
        Refused: the method cannot be used here, or an engine was not started for it.
        SyncError: an engine could not be met.
    """
    if rank != 0:
        return Follower()
    method = config.method
    if method == "auto":
        method = "nccl" if torch.cuda.is_available() else "gloo"
    sender = Leader(config, method, family)
    sender.join(replicas)
    return sender


class Follower:
    """Of all ranks but the first: it gathers with the others."""

    def join(self, replicas: Sequence[Replica]) -> None:
        """Nothing to do."""

    def leave(self, names: Sequence[str]) -> None:
        """Nothing to do."""

    def sync(
        self,
        weights: Iterable[tuple[str, Tensor]],
        version: WeightVersion,
        only: Sequence[str] | None = None,
        *,
        reset: bool = False,
    ) -> None:
        """Go through them."""
        for _ in weights:
            pass


class Leader:
    """Of rank 0."""

    def __init__(self, config: SyncConfig, method: str, family: str) -> None:
        self._config, self._method, self._family = config, method, family
        self._messages = messages(config, method)
        self._links: dict[str, Link] = {}

    @property
    def replicas(self) -> list[Replica]:
        """Those that were met."""
        return [link.replica for link in self._links.values()]

    def join(self, replicas: Sequence[Replica]) -> None:
        """Meet engines, side by side.

        Raises:
            Refused: one was not started for it.
            SyncError: one could not be met; the others are.
        """
        made = [Link(self._config, self._method, each) for each in replicas]
        joins = [(link, later(link.join)) for link in made]
        failures: list[Outcome] = []
        for link, joined in joins:
            name = link.replica.name
            try:
                joined.result()
            except OperationFailed as error:
                failures.append(Outcome(replica=name, state=State.LOST, failure=str(error)))
            else:
                self._links[name] = link
        if failures:
            first = failures[0]
            line = f"{first.replica}: {first.failure}; start it with what rltrain.sync.serve says"
            raise SyncError(line, failures)

    def leave(self, names: Sequence[str]) -> None:
        """Ask them nothing more."""
        for name in names:
            self._links.pop(name, None)

    def sync(
        self,
        weights: Iterable[tuple[str, Tensor]],
        version: WeightVersion,
        only: Sequence[str] | None = None,
        *,
        reset: bool = False,
    ) -> Synced:
        """All engines, or those of these names.

        Raises:
            WrongWeights: an engine does not hold what was sent.
            ReplicasLost: some failed, others hold the new version.
            SyncError: none holds it, or the weights could not be sent.
        """
        everything = iter(weights)
        try:
            links = list(self._links.values()) if only is None else [self._met(n) for n in only]
            round_ = Round(links, self._messages, self._config, reset=reset)
            return self._synced(round_, everything, version)
        finally:
            for _ in everything:
                pass

    def _synced(
        self, round_: Round, weights: Iterable[tuple[str, Tensor]], version: WeightVersion
    ) -> Synced:
        if not round_.courses:
            raise SyncError("there is no replica to send weights to")
        began = time.monotonic()
        round_.run(checkpoint_names(weights, self._family), version)
        _expect_new(round_.courses, version)
        sent = round_.sent
        return Synced(
            version=version,
            seconds=time.monotonic() - began,
            tensors=len(sent.fingerprints),
            bytes=sent.bytes,
            verified=len(sent.fingerprints) - round_.transformed,
            transformed=round_.transformed,
            replicas=tuple(each.outcome for each in round_.courses),
            parts=round_.parts,
        )

    def _met(self, name: str) -> Link:
        if name not in self._links:
            raise Refused(f"sync: {name}: there is no replica of this name")
        return self._links[name]


def _expect_new(courses: Sequence[Course], version: WeightVersion) -> None:
    """Raises what became of those that do not hold the version."""
    bad = [each for each in courses if each.state is not State.NEW]
    if not bad:
        return
    outcomes = [each.outcome for each in courses]
    first = next((each for each in bad if each.wrong), bad[0])
    others = ", ".join(str(each) for each in outcomes if each.replica != first.outcome.replica)
    line = (
        f"weights {version}: replica {first.outcome}: {first.outcome.failure}"
        f" (others: {others or 'none'})"
    )
    if first.wrong:
        raise WrongWeights(line, outcomes)
    if len(bad) < len(courses):
        raise ReplicasLost(line, outcomes)
    raise SyncError(line, outcomes)
