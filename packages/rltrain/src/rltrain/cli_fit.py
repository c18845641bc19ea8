# SPDX-License-Identifier: Apache-2.0
"""``rltrain fit``: flags to a call, a line a step, and how to go on where it was interrupted."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rltrain.cli_edge import edge, line_of
from rltrain.refused import Refused

if TYPE_CHECKING:
    from rich.progress import Progress

    from rltrain.loop.directory import Manifest
    from rltrain.loop.prepare import Again, New, Prepared
    from rltrain.loop.settings import Settings
    from rltrain.loop.types import Ended

NAN = float("nan")


def fit(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A TOML file, or tiny-cpu, overfit, …"),
    ] = None,
    trajectories: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Train on these: --out of envkit run, or a store."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The checkpoint to train: policy.path.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Directory of the run; a new one.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with this run.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting; may be repeated."),
    ] = None,
    ranks: Annotated[int, typer.Option(min=1, help="Processes to train in, on this machine.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and refuse, show the settings, train nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print how it ended as one JSON document.")
    ] = False,
) -> None:
    """Train a policy on recorded trajectories.

    Exits 0 when all steps are taken, 130 where it was interrupted (with a checkpoint; --resume goes
    on), 2 where it cannot be run.
    """
    with edge():
        given = [*(settings or ()), *([f"policy.path={policy}"] if policy else ())]
        asked = Asked(
            recipe=recipe,
            trajectories=trajectories,
            out=out,
            resume=resume,
            settings=given,
            dry_run=dry_run,
            as_json=as_json,
        )
        status = _launch(asked, ranks)
    raise typer.Exit(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line, but for the number of ranks."""

    recipe: str | None
    trajectories: Path | None
    out: Path | None
    resume: Path | None
    settings: list[str]
    dry_run: bool
    as_json: bool


def _launch(asked: Asked, ranks: int) -> int:
    if ranks == 1 or asked.dry_run:
        return train(asked)
    from rltrain.loop.launch import launched

    _asked(asked)  # what it refuses is refused before any process is started
    return launched(ranks, one_rank, asked)


def one_rank(asked: Asked) -> int:
    """`train` in a process of its own, which tells another one what it is refused.

    Raises:
        Refused: a user can set it right, whatever it was.
    """
    try:
        return train(asked)
    except Exception as error:
        if (line := line_of(error)) is None:
            raise
        raise Refused(line) from error


def _asked(asked: Asked) -> New | Again:
    """What is to be run.

    Raises:
        Refused: the command line contradicts itself, or a setting means nothing.
    """
    from rltrain.loop.prepare import Again, New, settings_of

    if asked.resume is not None:
        if asked.recipe or asked.settings or asked.out:
            raise Refused("--resume goes on with the run's own settings; leave the others out")
        return Again(root=asked.resume, trajectories=asked.trajectories)
    if asked.trajectories is None:
        raise Refused("training while sampling is not built yet; give --trajectories DIR")
    settings = settings_of(_recipe(asked.recipe), asked.settings)
    if asked.out is None and not asked.dry_run:
        raise Refused("name the directory of the run with --out RUN")
    return New(settings=settings, trajectories=asked.trajectories, root=asked.out)


def _recipe(name: str | None) -> Path | None:
    """A file by its path, or one of ours by its name."""
    from rltrain.recipes import recipe_file

    if name is None:
        return None
    file = Path(name)
    return file if file.suffix == ".toml" or file.is_file() else recipe_file(name)


def train(asked: Asked) -> int:
    """Be one rank of it, or all; the exit status."""
    from rltrain.loop.prepare import prepared
    from rltrain.loop.run import run

    rank = int(os.environ.get("RANK", "0"))
    with _screen(quiet=rank > 0, as_json=asked.as_json) as screen:
        found = prepared(_asked(asked), screen.read)
        screen.begun(found, asked.dry_run)
        if asked.dry_run:
            return 0
        ended = run(found, screen)
        screen.ended(ended, found.work.root)
    return 130 if ended.interrupted else 0


@contextmanager
def _screen(*, quiet: bool, as_json: bool) -> Generator[Screen]:
    """Lines on standard error, under which a bar stands where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bars:
        yield Screen(bars, quiet=quiet, as_json=as_json)


class Screen:
    """What a person sees of a run."""

    def __init__(self, bars: Progress, *, quiet: bool, as_json: bool) -> None:
        self._bars, self._quiet, self._as_json = bars, quiet, as_json
        self._bar = bars.add_task("reading", total=None)

    def line(self, text: str) -> None:
        """Something that a person should know."""
        self._bars.console.print(text, markup=False)

    def read(self, done: int, of: int) -> None:
        """How many trajectories have been read."""
        self._bars.update(self._bar, completed=done, total=of)

    def begun(self, found: Prepared, dry_run: bool) -> None:
        """What is going to be trained, on what, with which settings."""
        work, manifest = found.work, found.manifest
        self.line(shown_settings(work.settings))
        for remark in work.remarks:
            self.line(f"note: {remark}")
        self.line(
            f"{manifest.rows} trajectories, {manifest.groups} groups to learn from"
            f"{_left_out(manifest)}"
        )
        if dry_run and self._as_json and not self._quiet:
            print(json.dumps(manifest.model_dump()))
        self._bars.update(self._bar, description="loading the policy", completed=0, total=None)

    def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
        """A step was taken."""
        self._bars.update(self._bar, description="training", completed=step, total=steps)
        self.line(f"step {step}/{steps}  {told(numbers)}")

    def ended(self, ended: Ended, root: Path) -> None:
        """How it ended, and what can be done now."""
        if self._quiet:
            return
        if self._as_json:
            print(json.dumps({"run": str(root), **plain(ended)}))
            return
        print(f"{root}: {ended.step} of {ended.steps} steps; checkpoint {ended.checkpoint}")
        if ended.interrupted:
            print(f"interrupted; go on: rltrain fit --resume {root}")
        else:
            print(f"rltrain report {root}   rltrain export {root} DIR")


def shown_settings(settings: Settings) -> str:
    """As TOML."""
    from rltrain.config.show import shown

    return shown(settings)


def _left_out(manifest: Manifest) -> str:
    """Groups, rows and evaluations that nothing is learned from, with the reasons."""
    counts = Counter(manifest.dropped.values())
    parts = [f"{count} dropped: {reason}" for reason, count in sorted(counts.items())]
    parts += [f"{manifest.damaged} damaged"] if manifest.damaged else []
    parts += [f"{manifest.evaluations} of evaluations"] if manifest.evaluations else []
    return f" ({'; '.join(parts)})" if parts else ""


def told(numbers: dict[str, float]) -> str:
    """A step in one line; a mean reward with its fault share and bounds."""
    return (
        f"reward {numbers['reward/mean']:.3f} (faults {numbers['reward/fault_share']:.0%},"
        f" {numbers['reward/low']:.3f} to {numbers['reward/high']:.3f})"
        f"{_mismatch(numbers)}  TV {numbers.get('loss/tv', NAN):.3f}"
        f"  entropy {numbers.get('loss/entropy', NAN):.2f}"
        f"  masked + {numbers.get('loss/masked_positive', NAN):.1%}"
        f" - {numbers.get('loss/masked_negative', NAN):.1%}"
        f"  |g| {numbers.get('optimizer/gradient_norm', NAN):.2g}"
        f"  {numbers['tokens/trained']:,.0f} tokens  {numbers['seconds/total']:.1f} s"
    )


def _mismatch(numbers: dict[str, float]) -> str:
    """Of engine and trainer, where the step changed the very weights that sampled."""
    value = numbers.get("logprob/difference", NAN)
    return f"  mismatch {value:.2g}" if isfinite(value) else ""


def plain(ended: Ended) -> dict[str, Any]:
    """As JSON has it: what is no number is null."""
    last = {name: value if isfinite(value) else None for name, value in ended.last.items()}
    return {
        "step": ended.step,
        "steps": ended.steps,
        "resumed_at": ended.resumed_at,
        "interrupted": ended.interrupted,
        "checkpoint": str(ended.checkpoint) if ended.checkpoint else None,
        "last": last,
    }
