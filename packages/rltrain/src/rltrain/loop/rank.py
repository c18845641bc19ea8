# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""One rank of a live run's trainer: an actor that holds its part of the policy.

Contract: all ranks are asked the same, in the same order. Samples come as references that each rank
fetches for itself. Weights leave by rank 0, to which all ranks bring theirs together.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from rltrain.batch.cost import Cost
from rltrain.batch.sample import Sample
from rltrain.loop.checkpoint import STATE, Checkpoints, Live
from rltrain.loop.directory import CHECKPOINTS
from rltrain.loop.learner import Learner
from rltrain.loop.lineage import Lineages
from rltrain.loop.seconds import Seconds
from rltrain.loop.settings import Settings
from rltrain.policy.ranks import MEETING, all_of, joined
from rltrain.sync.canary import Canary, Checked
from rltrain.sync.sender import Sender, open_sender
from rltrain.sync.types import Replica, Synced
from rltrain.sync.version import WeightVersion

FETCH_S: Final = 300.0
"""For the samples of a step to come from the nodes that have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What came of handing weights on."""

    synced: Synced | None
    checked: Checked | None
    """None on ranks but the first, both."""


class RankHost:
    """The actor."""

    def __init__(self, settings: Settings, cost: Cost, root: Path, data: str) -> None:
        self._settings, self._cost, self._root, self._data = settings, cost, root, data
        self._held = ExitStack()
        self._seconds = Seconds()
        self._lines: list[str] = []
        self._learner: Learner | None = None
        self._sender: Sender | None = None
        self._joined: list[Replica] = []
        self._step = 0

    def meeting(self) -> str:
        """Where the ranks meet, if it is on this one's machine."""
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        import ray

        return f"tcp://{ray.util.get_node_ip_address()}:{port}"

    def join(self, meeting: str, rank: int, ranks: int, threads: int) -> None:
        """Be one of the ranks, with the policy loaded.

        Raises:
            Refused: the policy cannot be loaded or packed.
        """
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), MEETING: meeting}
        if threads:
            torch.set_num_threads(threads)
        deterministic = self._settings.run.deterministic
        self._held.enter_context(joined(deterministic=deterministic))
        self._learner = Learner(self._settings, self._cost, self._seconds)

    def take_up(self) -> Live | None:
        """Be where the last whole checkpoint left the run; what it said of it.

        Raises:
            Refused: there are some, and none is whole.
        """
        kept = self._checkpoints.newest()
        if kept is None or kept.commit.live is None:
            return None
        self._policy.restore(kept.directory / STATE)
        self._step = kept.commit.live.step
        return kept.commit.live

    def learn(self, step: int, samples: Sequence[Any], lineages: Lineages) -> dict[str, float]:
        """Take the step of this number on all that the references come to; what it told."""
        assert self._learner is not None
        with self._seconds.part("read"):
            known = [_known(sample, lineages) for sample in _fetched(samples)]
        numbers = self._learner.learn(step, known, step)
        self._step = step + 1
        return {**numbers, **self._seconds.told()}

    def keep(self, step: int, live: Live, spared: int | None) -> tuple[Path, list[str]]:
        """Leave a checkpoint after so many steps; where, and what is to be told."""
        place = self._checkpoints.save(self._policy, step, live, spared)
        lines, self._lines = self._lines, []
        return place, lines

    def sync(
        self, replicas: Sequence[Replica], lineages: Lineages, recent: Sequence[Any]
    ) -> Handed:
        """Hand the weights there are to these engines, and to none else, and check each on them.

        ``recent`` are references to samples that are scored twice. What is told is rank 0's.

        Raises:
            SyncError: not every replica holds them, or one scores otherwise than the trainer.
        """
        synced, failed = None, None
        try:
            synced = self._sent(replicas, lineages.version(self._step))
        except Exception as error:  # the boundary: the other ranks must not wait for this one
            failed = error
        if any(all_of(failed is not None)):
            if failed is not None:
                raise failed
            return Handed(synced=None, checked=None)
        return Handed(synced=synced, checked=self.check(replicas, lineages, recent))

    def _sent(self, replicas: Sequence[Replica], version: WeightVersion) -> Synced | None:
        sender = self._met(replicas)
        names = [each.name for each in replicas]
        return sender.sync(self._policy.weights(), version, names)

    def check(
        self, replicas: Sequence[Replica], lineages: Lineages, recent: Sequence[Any]
    ) -> Checked | None:
        """Have these engines and the trainer score the same; what is told is rank 0's."""
        version = lineages.version(self._step)
        return self._canary.check(self._policy, replicas, version, _fetched(recent))

    def _met(self, replicas: Sequence[Replica]) -> Sender:
        """The sender, which has met these."""
        if self._sender is None:
            self._sender = open_sender(
                self._settings.sync, (), family=self._family, rank=self._policy.rank
            )
        fresh = [each for each in replicas if each not in self._joined]
        self._sender.leave([each.name for each in fresh])
        self._joined = [old for old in self._joined if old.name not in {f.name for f in fresh}]
        for each in fresh:  # one by one: what was met stays so where another one fails
            self._sender.join([each])
            self._joined.append(each)
        return self._sender

    @property
    def _family(self) -> str:
        return str(self._model_config["model_type"])

    @property
    def _model_config(self) -> dict[str, Any]:
        config = Path(self._settings.policy.path) / "config.json"
        return json.loads(config.read_text("utf-8"))

    @cached_property
    def _canary(self) -> Canary:
        settings, config = self._settings, self._model_config
        sizes = config.get("text_config", config)
        assert settings.rollout is not None
        return Canary(
            settings.sync.canary,
            vocabulary=int(sizes["vocab_size"]),
            context_tokens=settings.rollout.context_tokens,
            dtype=settings.policy.dtype,
            cap=settings.batch.micro_batch_tokens,
        )

    def leave(self) -> None:
        """Be no rank any more."""
        self._held.close()

    @property
    def _policy(self) -> Any:
        assert self._learner is not None, "join() comes first"
        return self._learner.backend

    @property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(
            self._root / CHECKPOINTS,
            data=self._data,
            keep=self._settings.checkpoint.keep,
            told=self._lines.append,
        )


def _fetched(references: Sequence[Any]) -> list[Sample]:
    """The samples of all of them."""
    import ray

    parts: list[list[Sample]] = ray.get(list(references), timeout=FETCH_S)
    return [sample for part in parts for sample in part]


def _known(sample: Sample, lineages: Lineages) -> Sample:
    """With the steps of versions; those of weights that are no ancestors are not known here."""
    numbers, where = np.unique(sample.weight_version, return_inverse=True)
    steps = [lineages.step_of(int(n)) if lineages.is_ancestor(int(n)) else -1 for n in numbers]
    known = replace(sample, weight_version=np.array(steps, np.int32)[where])
    if sample.kv_version is None:
        return known
    numbers, where = np.unique(sample.kv_version, return_inverse=True)
    steps = [lineages.step_of(int(n)) for n in numbers]
    return replace(known, kv_version=np.array(steps, np.int32)[where])
