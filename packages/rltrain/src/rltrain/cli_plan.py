# SPDX-License-Identifier: Apache-2.0
"""``rltrain plan``: from a recipe to a table, a page and one sentence, or one line on why not."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rltrain.cli_edge import edge
from rltrain.refused import Refused

if TYPE_CHECKING:
    from rltrain.loop.settings import Settings
    from rltrain.plan.plan import Asked, Plan, Told


def plan(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file, or tiny-cpu, …")],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Directory with the model's config.json, or qwen3.6-35b-a3b, qwen3.5-397b-a17b."
            " Default: policy.path, or the published run's own.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting; may be repeated."),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="A.B=C", help='One assumption, gpu="h200" for one; may be repeated.'),
    ] = None,
    trajectories: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Lengths and durations of these, a trajectory store."),
    ] = None,
    calibrate: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Speeds as a run of rltrain had them.")
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Nodes INFERENCE:TRAINING, 8:4,10:4; on CPUs trials at once, 8,16."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=4, help="Steps that are simulated.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Of lengths, order and faults.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan as an HTML page.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all of it as one JSON document.")
    ] = False,
) -> None:
    """Say what bounds a run, before a GPU is rented.

    Both ceilings of the trials at once, which of them binds, and a simulated run for each split of
    the nodes. Nothing is started. Exits 0, or 2 where it cannot be told.
    """
    with edge("name a FILE that can be written with --out"):
        from rltrain.plan.plan import planned

        given = [*_path(recipe, model), *(settings or ())]
        asked = _asked(recipe, given, model, assume or (), calibrate)
        asked = _with(asked, trajectories, grid=grid, steps=steps, seed=seed)
        with _bar() as told:
            found = planned(asked, told)
        if out is not None:
            from envkit.durable import write_durably
            from rltrain.plan.page import to_html

            write_durably(out.absolute(), to_html(found).encode("utf-8", "replace"))
        _print(found, as_json)


def _path(recipe: str, model: str | None) -> list[str]:
    """Recipes that are shipped leave ``policy.path`` open, and here no more of it is needed than a
    config."""
    from rltrain.recipes import RECIPES

    wanted = model is not None or recipe in RECIPES
    return [f"policy.path={json.dumps(model or '')}"] if wanted else []


def _asked(
    recipe: str, given: Sequence[str], model: str | None, assume: Sequence[str], run: Path | None
) -> Asked:
    from rltrain.config.read import read
    from rltrain.loop.settings import Settings
    from rltrain.plan.assumptions import Assumptions
    from rltrain.plan.calibrate import calibrated
    from rltrain.plan.model import config_of
    from rltrain.plan.plan import Asked
    from rltrain.plan.published import PUBLISHED
    from rltrain.recipes import recipe_file

    file = Path(recipe)
    if file.suffix != ".toml" and not file.is_file():
        file = recipe_file(recipe)
    settings = read(Settings, file, given)
    published = PUBLISHED.get(recipe)
    known = [*(published.known if published else ()), *assume]
    told = _assumed(Assumptions, known)
    tables = _tables(recipe, settings)
    name = settings.policy.path or (published.model if published else "")
    if not name:
        raise Refused(f"{recipe}: names no model; give --model DIR, which has its config.json")
    found = calibrated(run, told) if run else None
    return Asked(
        name=recipe,
        tables=tables,
        config=config_of(name),
        told=found.told if found else told,
        fixed=_names(known) | (found.fixed if found else frozenset[str]()),
        calibration=found,
        published=published,
    )


def _assumed(cls: type[Any], given: Sequence[str]) -> Any:
    from rltrain.config.read import read

    for each in given:
        if "=" not in each:
            raise Refused(f"--assume {each}: give NAME=VALUE, as memory.overhead_gib=6")
    return read(cls, None, given)


def _names(given: Sequence[str]) -> frozenset[str]:
    return frozenset(each.partition("=")[0] for each in given)


def _tables(recipe: str, settings: Settings) -> Any:
    from rltrain.cluster.config import HERE
    from rltrain.plan.plan import Tables

    if settings.rollout is None:
        raise Refused(f"{recipe}: has no [rollout], so nothing is sampled and there is no plan")
    return Tables(
        batch=settings.batch,
        buffer=settings.buffer,
        rollout=settings.rollout,
        cluster=settings.cluster or HERE,
        checkpointing=settings.policy.checkpointing,
    )


def _with(asked: Asked, trajectories: Path | None, **more: Any) -> Asked:
    from dataclasses import replace

    from rltrain.plan.trials import recorded

    found = recorded(trajectories) if trajectories else None
    return replace(asked, recorded=found, **more)


def _print(found: Plan, as_json: bool) -> None:
    from envkit.preflight.consoles import report_console
    from rltrain.plan.document import document
    from rltrain.plan.show import show

    if as_json:
        print(json.dumps(document(found), ensure_ascii=False))
    else:
        show(found, report_console(highlight=False))


@contextmanager
def _bar() -> Generator[Told]:
    """How many splits are done, on standard error; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as p:
        task = p.add_task("simulating", total=None)
        yield lambda done, of: p.update(task, completed=done, total=of)
