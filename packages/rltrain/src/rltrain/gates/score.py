# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What a trainer makes of rows: the log-probs of their comparable tokens.

Contract: they come from the backend that trains, by the call that a training step makes, packed
into micro-batches; only nothing is stamped, for nothing is trained.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from transformers.utils import logging

from rltrain.batch.cost import Cost
from rltrain.batch.micro import joined as in_one_row
from rltrain.batch.pack import pack
from rltrain.gates.survey import Told
from rltrain.gates.taken import Compared, Row
from rltrain.policy.config import Dtype, OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import joined
from rltrain.policy.types import Backend
from rltrain.refused import Refused

BY_TOKEN = Cost(a=1.0, b=0.0)
"""On one rank nothing has to be balanced."""


@contextmanager
def trainer(path: Path, dtype: Dtype) -> Generator[Backend]:
    """The policy, loaded as a trainer loads it, in this process alone.

    Raises:
        Refused: it cannot be loaded, or does not keep packed samples apart.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise Refused("check: runs in one process; start it without torchrun")
    logging.disable_progress_bar()
    with joined():
        yield FsdpBackend(PolicyConfig(path=str(path), dtype=dtype), OptimizerConfig())


def compared(backend: Backend, rows: Sequence[Row], *, cap: int, told: Told) -> list[Compared]:
    """Every row with the trainer's log-probs, in order; ``cap`` is tokens of a micro-batch, or the
    longest row's."""
    found = [np.full(len(row.sample), np.nan) for row in rows]
    done, whole = 0, sum(len(row.sample) for row in rows)
    for bin_ in _bins(rows, cap):
        batch = in_one_row([rows[number].sample for number in bin_], bin_)
        logps = backend.score(batch).logp.double().cpu().numpy()
        ends = np.cumsum([rows[number].sample.trained for number in bin_])[:-1]
        for number, part in zip(bin_, np.split(logps, ends), strict=True):
            found[number][rows[number].sample.mask] = part
        done += sum(batch.lengths)
        told(done, whole)
    return [Compared(row=row, trainer=each) for row, each in zip(rows, found, strict=True)]


def at_temperature(rows: Sequence[Row], temperature: float) -> list[Row]:
    """The same as if they had been recorded so."""
    return [replace(row, sample=replace(row.sample, temperature=temperature)) for row in rows]


def _bins(rows: Sequence[Row], cap: int) -> list[list[int]]:
    """Which rows go together: those of one temperature, as many as fit."""
    bins: list[list[int]] = []
    for temperature in sorted({row.sample.temperature for row in rows}):
        mine = [n for n, row in enumerate(rows) if row.sample.temperature == temperature]
        lengths = [len(rows[number].sample) for number in mine]
        plan = pack(lengths, BY_TOKEN, cap=max(cap, *lengths), ranks=1)
        bins += [[mine[place] for place in bin_] for bin_ in plan.ranks[0]]
    return bins
