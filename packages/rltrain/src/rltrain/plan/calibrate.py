# SPDX-License-Identifier: Apache-2.0
"""Assumptions out of a run that was measured: its metrics, its settings and its trajectories.

From the metrics of an rltrain run: steps an hour, seconds of a step by part and tokens of a step.
From its trajectories: what each trial waited for, what its engine took for each request, and how
many were under way beside it. Cores that are shared are taken out of all of it by the utilisation
law: engines, boxes and trainer together wanted r cores of C, so each took max(1, r / C) times as
long as it would have had alone.

Contract: a run that has too few steps or no trajectory with a time is refused with what it lacks.
What was not measured keeps its assumption. ``factor`` is what the simulation of the run's own
setting is off by, and by which other settings are corrected.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from rltrain.batch.config import BatchConfig
from rltrain.buffer.config import BufferConfig
from rltrain.cluster.config import HERE, ClusterConfig
from rltrain.config.read import made
from rltrain.plan.assumptions import Assumptions, TrainerAssumptions
from rltrain.plan.speed import Crowd
from rltrain.plan.trials import Population, Trial, read_trial, stores, whole_s
from rltrain.refused import Refused
from rltrain.rollout.config import RolloutConfig
from rltrain.track.run import SETTINGS, Run, read_run

if TYPE_CHECKING:
    from envkit.trajectory.types import Trajectory

WAIT: Final = ("wait",)
"""Parts of a step in which the trainer waits for a batch."""
SYNC: Final = ("sync", "canary", "gate", "evaluate")
"""In which trials stand still, or it does nothing else."""
FEW_STEPS: Final = 4
ROUNDS: Final = 50
"""In which the factors of a crowd settle."""
BEFORE: Final = ("start", "gateway", "setup", "hold", "turn")
"""Phases of a trial before its loop begins."""
GROWTH: Final = 0.05
"""What a sequence adds to a decoding step of an engine on CPUs, as a share of an empty one, where a
run does not tell: vLLM with 0.4 million parameters gave 343 tokens a second alone and 6,100 at
256."""
SPREAD: Final = 1.3
"""Most by least under way, below which a run does not tell how an engine slows with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a run has told."""

    run: Path
    told: Assumptions
    fixed: frozenset[str]
    """Assumptions that are measured now."""
    population: Population
    steps_per_h: float
    running: float
    """Trials under way, in the mean."""
    sampling: float
    """Of those, that an engine worked for."""
    training: float
    """Share of the time in which the trainer worked."""
    slow: float
    """How many times as long everything took as it would have had alone."""
    tables: Mapping[str, Any]
    """The run's settings, to simulate it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    began: float
    ended: float
    sampled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """Between the first step's end and the last one's."""

    began: float
    ended: float
    steps: int

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def under_way(self, spans: Sequence[tuple[float, float]]) -> float:
        """How many of them there were, in the mean."""
        inside = (min(end, self.ended) - max(begin, self.began) for begin, end in spans)
        return sum(max(0.0, each) for each in inside) / self.seconds


def calibrated(path: Path, told: Assumptions) -> Calibration:
    """What a run tells, over what is assumed.

    Raises:
        Refused: it is no run, or does not tell enough.
    """
    run = read_run(path)
    window = _window(run)
    rows = _rows(path)
    requests = [each for row in rows for each in _requests(row)]
    running = window.under_way([_span(row) for row in rows])
    sampling = window.under_way([(each.began, each.ended) for each in requests])
    if not running or not requests:
        raise Refused(f"{path}: none of its trajectories was under way between its steps")
    training, trainer = _trainer(run, told, window)
    cores = _cores(run, told)
    crowd = _crowd(told, run, cores, (running, sampling, training))
    slow = crowd.slow
    step_s, sequence_s = _engine(requests, window)
    waits = 1 - told.time.box_share + told.time.box_share * crowd.box
    return Calibration(
        run=path,
        told=replace(
            told,
            cores=cores,
            engine=replace(
                told.engine, step_s=step_s / slow, sequence_s=sequence_s / slow, prefill_s=0.0
            ),
            trainer=replace(
                trainer,
                fixed_s=trainer.fixed_s / slow,
                token_s=(trainer.token_s or 0.0) / slow,
            ),
            faults=_mean(run, "reward/fault_share") or 0.0,
        ),
        fixed=frozenset(
            f"{table}.{name}"
            for table, names in (
                ("engine", ("step_s", "sequence_s", "prefill_s")),
                ("trainer", ("fixed_s", "token_s", "sync_s")),
            )
            for name in names
        )
        | {"cores", "faults", "lengths.median"},
        population=_population(rows, waits),
        steps_per_h=3600 * window.steps / window.seconds,
        running=running,
        sampling=sampling,
        training=training,
        slow=slow,
        tables=_tables(run),
    )


def tables_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """The tables that a plan depends on, of a run's or a recipe's TOML."""
    cluster = found.get("cluster")
    return {
        "batch": made(BatchConfig, found.get("batch", {}), "batch"),
        "buffer": made(BufferConfig, found.get("buffer", {}), "buffer"),
        "rollout": made(RolloutConfig, found.get("rollout", {}), "rollout"),
        "cluster": HERE if cluster is None else made(ClusterConfig, cluster, "cluster"),
        "checkpointing": bool(found.get("policy", {}).get("checkpointing", False)),
    }


def _tables(run: Run) -> Mapping[str, Any]:
    try:
        return tomllib.loads(run.settings)
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"{run.path / SETTINGS}: is no TOML ({error}); mend it") from error


# --- the trainer ----------------------------------------------------------------------------------


def _window(run: Run) -> _Window:
    times = [each for each in run.series("time") if each is not None]
    if len(times) < FEW_STEPS:
        raise Refused(
            f"{run.path}: has {len(times)} steps, and {FEW_STEPS} are wanted to calibrate by;"
            " let it go on"
        )
    return _Window(began=times[0], ended=times[-1], steps=len(times) - 1)


def _trainer(run: Run, told: Assumptions, window: _Window) -> tuple[float, TrainerAssumptions]:
    """Share of the time in which it worked, and its seconds by step and token."""
    steps = run.history.steps[1:]
    syncs = [_parts(each.numbers, SYNC) for each in steps]
    busy = [
        max(0.0, (each.numbers.get("seconds/total") or 0.0) - _parts(each.numbers, WAIT) - sync)
        for each, sync in zip(steps, syncs, strict=True)
    ]
    tokens = [each.numbers.get("tokens/all") or 0.0 for each in steps]
    fixed_s, token_s = _line(tokens, busy)
    share = min(1.0, sum(busy) / window.seconds)
    return share, replace(told.trainer, fixed_s=fixed_s, token_s=token_s, sync_s=fmean(syncs))


def _parts(numbers: Mapping[str, float | None], names: Sequence[str]) -> float:
    return sum(numbers.get(f"seconds/{name}") or 0.0 for name in names)


def _mean(run: Run, name: str) -> float | None:
    found = [each for each in run.series(name) if each is not None]
    return fmean(found) if found else None


def _line(
    xs: Sequence[float], ys: Sequence[float], weights: Sequence[float] | None = None
) -> tuple[float, float]:
    """Least squares: what there is at 0 and what each adds, neither below 0."""
    weights = weights or [1.0] * len(xs)
    whole = sum(weights)
    x, y = (sum(w * v for w, v in zip(weights, vs, strict=True)) / whole for vs in (xs, ys))
    square = sum(w * (v - x) ** 2 for w, v in zip(weights, xs, strict=True))
    product = sum(w * (a - x) * (b - y) for w, a, b in zip(weights, xs, ys, strict=True))
    slope = max(0.0, product / square) if square else 0.0
    if y - slope * x < 0 and x:
        return 0.0, y / x
    return y - slope * x, slope


# --- trials ---------------------------------------------------------------------------------------


def _rows(path: Path) -> list[Trajectory]:
    """Of every store below a run's directory, that were executed and not evaluated."""
    from envkit.trajectory.store import Store
    from envkit.trajectory.types import Trajectory as Row

    found = [
        each
        for place in stores(path)
        for each in Store(place).scan()
        if isinstance(each, Row) and each.outcome.attempts and not each.episode.evaluation
    ]
    if not found:
        raise Refused(
            f"{path}: no trajectory store below it has a trial with times; give the directory of a"
            " run that sampled"
        )
    return found


def _span(row: Trajectory) -> tuple[float, float]:
    began = row.outcome.attempts[-1].started_at
    return began, began + whole_s(row)


def _requests(row: Trajectory) -> Iterator[_Request]:
    """In Unix time."""
    began = row.outcome.attempts[-1].started_at
    began += sum(row.outcome.phases.get(name, 0.0) for name in BEFORE)
    for each in row.episode.requests:
        if each.sampled_tokens:
            at = began + each.started_s
            yield _Request(began=at, ended=at + each.seconds, sampled=each.sampled_tokens)


def _population(rows: Sequence[Trajectory], waits: float) -> Population:
    """Of those whose reward is valid, without what shared cores added to their waiting."""
    groups: dict[str, list[Trial]] = {}
    for row in rows:
        if row.outcome.reward_valid:
            for trial in read_trial(row):
                fair = replace(trial, waits_s=trial.waits_s / waits)
                groups.setdefault(row.identity.group_id, []).append(fair)
    kept = tuple(tuple(group) for group in groups.values() if group)
    if not kept:
        raise Refused(f"none of the run's {len(rows)} trajectories has a valid reward")
    return Population(groups=kept, source=f"{sum(map(len, kept))} trajectories of the run")


def _engine(requests: Sequence[_Request], window: _Window) -> tuple[float, float]:
    """Seconds of a sampled token: with nothing else under way, and more for each other request."""
    inside = [each for each in requests if window.began <= each.began < window.ended]
    beside = _beside(requests, inside or requests)
    inside = inside or list(requests)
    each_s = [(each.ended - each.began) / each.sampled for each in inside]
    weights = [float(each.sampled) for each in inside]
    usual = sum(w * b for w, b in zip(weights, beside, strict=True)) / sum(weights)
    mean = sum(w * s for w, s in zip(weights, each_s, strict=True)) / sum(weights)
    alone, more = _line(beside, each_s, weights)
    if max(beside) < SPREAD * min(beside) or not more:
        alone = mean / (1 + GROWTH * usual)
        return alone, GROWTH * alone
    return alone, more


def _beside(requests: Sequence[_Request], asked: Sequence[_Request]) -> list[float]:
    """How many were under way during each, itself among them, in the mean."""
    turns = sorted([(r.began, 1) for r in requests] + [(r.ended, -1) for r in requests])
    times, areas, counts = [turns[0][0]], [0.0], [0]
    for at, change in turns:
        areas.append(areas[-1] + counts[-1] * (at - times[-1]))
        times.append(at)
        counts.append(counts[-1] + change)
    return [
        (_area(each.ended, times, areas, counts) - _area(each.began, times, areas, counts))
        / max(each.ended - each.began, 1e-9)
        for each in asked
    ]


def _area(at: float, times: list[float], areas: list[float], counts: list[int]) -> float:
    place = bisect_right(times, at) - 1
    return areas[place] + counts[place] * (at - times[place])


# --- cores ----------------------------------------------------------------------------------------


def _cores(run: Run, told: Assumptions) -> float:
    """Of the machine that the run names; 0 where it has a cluster with GPUs."""
    cluster = _tables(run).get("cluster")
    if cluster is not None and cluster.get("gpus_per_node", 8):
        return 0.0
    named = re.search(r"(\d+) cores", str(run.manifest.get("machine", "")))
    return float(named[1]) if named else told.cores


def _crowd(
    told: Assumptions, run: Run, cores: float, measured: tuple[float, float, float]
) -> Crowd:
    """How many times as long things took, by how many were under way, sampling, and training."""
    if not cores:
        return Crowd()
    running, sampling, training = measured
    at_work = _tables(run).get("rollout", {}).get("at_work") or told.time.turns_a_core * cores
    share, crowd = told.time.box_share, Crowd()
    for _ in range(ROUNDS):
        part = share * crowd.box / (1 - share + share * crowd.box)
        boxes = max(0.0, running - sampling) * part
        turns = max(1.0, boxes / at_work) if at_work else 1.0
        engine = min(1.0, sampling) * told.engine.threads
        wanted = boxes / turns + engine + training * told.trainer.threads
        slow = max(1.0, wanted / cores)
        crowd = Crowd(slow=slow, box=slow * turns)
    return crowd
