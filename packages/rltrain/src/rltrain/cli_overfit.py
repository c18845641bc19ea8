# SPDX-License-Identifier: Apache-2.0
"""``rltrain overfit``: flags to a call, and a verdict in a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rltrain.cli_edge import edge

if TYPE_CHECKING:
    from rltrain.loop.overfit import Verdict


def overfit(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A TOML file, or tiny-cpu, overfit, …"),
    ] = None,
    tasks: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Tasks to choose from: rollout.tasks.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The checkpoint to train: policy.path.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Directory of the run; a new one.")
    ] = None,
    trajectories: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Choose by these rewards. Default: evaluate first."),
    ] = None,
    environment_python: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Interpreter with envkit[run], where trials run."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting; may be repeated."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as one JSON document.")
    ] = False,
) -> None:
    """Prove that a few tasks can be learned, before a long run is begun.

    Tasks whose samples differ in reward are trained on synchronously, all of them in every step.
    Exits 0 where their mean reward rose as asked, 1 where it did not, with what may be why, 130
    where it was interrupted, 2 where it cannot be run.
    """
    with edge():
        from rltrain.cli_fit import named_settings, recipe_of
        from rltrain.cli_watch import watching
        from rltrain.loop.overfitting import overfit as run
        from rltrain.loop.prepare import settings_of
        from rltrain.refused import Refused

        if out is None:
            raise Refused("name the directory of the run with --out RUN")
        given = named_settings(settings, policy, tasks, environment_python)
        asked = settings_of(recipe_of(recipe), given)
        with watching("overfit") as watch:
            verdict = run(asked, out, trajectories, watch)
        if verdict is None:
            raise typer.Exit(130)
        _show(verdict, out, as_json)
    raise typer.Exit(0 if verdict.passed else 1)


def _show(verdict: Verdict, out: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"run": str(out), **verdict.model_dump()}))
        return
    word = "PASS" if verdict.passed else "FAIL"
    print(
        f"{word}  reward of {verdict.tasks} tasks {verdict.before:.3f} to {verdict.after:.3f} in"
        f" {verdict.steps} steps: {verdict.rise:+.3f} [{verdict.low:+.3f}, {verdict.high:+.3f}],"
        f" at least {verdict.wanted:+.3f} is wanted"
    )
    for line in verdict.diagnosis:
        print(f"      {line}")
    if verdict.passed:
        print(f"rltrain fit … --set gates.overfit.run={out}")
