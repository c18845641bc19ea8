# SPDX-License-Identifier: Apache-2.0
"""``rltrain fit``: flags to a call, a line a step, and how to go on where it was interrupted."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rltrain.cli_edge import edge, line_of
from rltrain.refused import Refused
from rltrain.track.line import step_line

if TYPE_CHECKING:
    from rich.progress import Progress

    from rltrain.loop.directory import Manifest
    from rltrain.loop.prepare import Again, New, Prepared
    from rltrain.loop.prepare_live import PreparedLive
    from rltrain.loop.settings import Settings
    from rltrain.loop.types import Ended


def fit(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A TOML file, or tiny-cpu, overfit, …"),
    ] = None,
    trajectories: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Train on these: --out of envkit run, or a store."),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Sample these tasks and train on that: rollout.tasks."),
    ] = None,
    environment_python: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Interpreter with envkit[run], where trials run."),
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
        bool,
        typer.Option(
            "--dry-run",
            help="Read and refuse, show the settings and whether it fits, train nothing.",
        ),
    ] = False,
    stop_after: Annotated[
        int | None,
        typer.Option(
            "--stop-after-step", metavar="N", min=1, help="Leave it there; --resume goes on."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print how it ended as one JSON document.")
    ] = False,
) -> None:
    """Train a policy, while it is sampled from or on recorded trajectories.

    Exits 0 when all steps are taken, or those up to --stop-after-step, 130 where it was interrupted
    (with a checkpoint; --resume goes on), 1 where a dry run finds that it does not fit, 2 where it
    cannot be run.
    """
    with edge():
        given = named_settings(settings, policy, tasks, environment_python)
        asked = Asked(
            recipe=recipe,
            trajectories=trajectories,
            out=out,
            resume=resume,
            settings=given,
            dry_run=dry_run,
            stop_after=stop_after or 0,
            as_json=as_json,
        )
        status = _launch(asked, ranks)
    raise typer.Exit(status)


def named_settings(
    settings: list[str] | None,
    policy: Path | None,
    tasks: Path | None,
    environment_python: Path | None,
) -> list[str]:
    """All single settings of a command line; those with options of their own come last."""
    named = {
        "policy.path": policy,
        "rollout.tasks": tasks,
        "rollout.environment_python": environment_python,
    }
    own = [f"{name}={value}" for name, value in named.items() if value is not None]
    return [*(settings or ()), *own]


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
    stop_after: int = 0

    def left_at(self, ended: Ended) -> bool:
        """Whether it was left at the step that was named."""
        return 0 < self.stop_after == ended.step


def _launch(asked: Asked, ranks: int) -> int:
    if _is_live(asked):
        if ranks != 1:
            raise Refused("--ranks is of recorded trajectories; set cluster.ranks")
        return train_live(asked)
    if ranks == 1 or asked.dry_run:
        return train(asked)
    from rltrain.loop.launch import launched

    _asked(asked)  # what it refuses is refused before any process is started
    return launched(ranks, one_rank, asked)


def _is_live(asked: Asked) -> bool:
    """Whether the run samples what it trains on."""
    from rltrain.loop.prepare_live import is_live

    if asked.resume is not None:
        _expect_alone(asked)
        return is_live(asked.resume)
    return asked.trajectories is None


def train_live(asked: Asked) -> int:
    """Sample and train; the exit status."""
    from rltrain.cli_watch import watching
    from rltrain.loop.run import run_live

    found = _prepared_live(asked)
    found = replace(found, work=replace(found.work, stop_after=asked.stop_after))
    with watching(asked.recipe or found.work.root.name) as watch:
        for line in _begun_live(found):
            watch.print(line)
        if asked.dry_run:
            return _fits(asked, found, watch.print)
        ended = run_live(found, watch)
    show_ended(ended, found.work.root, as_json=asked.as_json)
    return 130 if ended.interrupted and not asked.left_at(ended) else 0


def _fits(asked: Asked, found: PreparedLive, say: Callable[[str], None]) -> int:
    """Say whether a run would fit here, and that trainer and trials make the same ids; the exit
    status."""
    from rltrain.loop.rendering import expect_same, of_environment, of_trainer
    from rltrain.plan.fits import Where, line_of, rooms

    work = found.work
    policy = Path(work.settings.policy.path)
    trainer = of_trainer(policy)
    expect_same(trainer, of_environment(work.environment_python, policy))
    say(f"the same in trainer and trials: {trainer.line}")
    found_rooms = rooms(work, Where.here(asked.out))
    for each in found_rooms:
        say(line_of(each))
    if asked.as_json:
        shown = [{**asdict(each), "fits": each.fits} for each in found_rooms]
        print(json.dumps({**found.manifest.model_dump(), **asdict(trainer), "rooms": shown}))
    return 0 if all(each.fits for each in found_rooms) else 1


def _prepared_live(asked: Asked) -> PreparedLive:
    from rltrain.loop.prepare import settings_of
    from rltrain.loop.prepare_live import expect_overfit, prepared_live, resumed_live

    if asked.resume is not None:
        return resumed_live(asked.resume)
    settings = settings_of(recipe_of(asked.recipe), asked.settings)
    found = prepared_live(settings, asked.out)
    expect_overfit(found.work.settings)
    if asked.out is None and not asked.dry_run:
        raise Refused("name the directory of the run with --out RUN")
    return found


def _begun_live(found: PreparedLive) -> Iterator[str]:
    """What is going to be sampled and trained, with which settings."""
    work = found.work
    yield shown_settings(work.settings)
    for remark in (*work.settings.notes(), *work.remarks):
        yield f"note: {remark}"
    yield f"{len(work.names)} tasks in {work.tasks}, {work.steps} steps"


def _expect_alone(asked: Asked) -> None:
    """A run goes on with its own settings."""
    if asked.recipe or asked.settings or asked.out:
        raise Refused("--resume goes on with the run's own settings; leave the others out")


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
        _expect_alone(asked)
        return Again(root=asked.resume, trajectories=asked.trajectories)
    assert asked.trajectories is not None
    settings = settings_of(recipe_of(asked.recipe), asked.settings)
    if asked.out is None and not asked.dry_run:
        raise Refused("name the directory of the run with --out RUN")
    return New(settings=settings, trajectories=asked.trajectories, root=asked.out)


def recipe_of(name: str | None) -> Path | None:
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
    with screen_of(quiet=rank > 0, as_json=asked.as_json) as screen:
        found = prepared(_asked(asked), screen.read)
        screen.begun(found, asked.dry_run)
        if asked.dry_run:
            return 0
        work = replace(found.work, stop_after=asked.stop_after)
        ended = run(replace(found, work=work), screen)
        screen.ended(ended, found.work.root)
    return 130 if ended.interrupted and not asked.left_at(ended) else 0


@contextmanager
def screen_of(*, as_json: bool, quiet: bool = False) -> Generator[Screen]:
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
        self.line(f"step {step}/{steps}  {step_line(numbers)}")

    def ended(self, ended: Ended, root: Path) -> None:
        """How it ended, and what can be done now."""
        if not self._quiet:
            show_ended(ended, root, as_json=self._as_json)


def show_ended(ended: Ended, root: Path, *, as_json: bool) -> None:
    """How a run ended, and what can be done now."""
    if as_json:
        print(json.dumps({"run": str(root), **plain(ended)}))
        return
    print(f"{root}: {ended.step} of {ended.steps} steps; checkpoint {ended.checkpoint}")
    if ended.interrupted:
        print(f"not over; go on: rltrain fit --resume {root}")
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
