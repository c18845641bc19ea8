# SPDX-License-Identifier: Apache-2.0
"""``rltrain export``: a run's checkpoint as a directory that engines load."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rltrain.cli_edge import edge
from rltrain.refused import Refused


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.")],
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Where it goes; a new directory.")],
    step: Annotated[
        int | None, typer.Option(min=1, help="Of which checkpoint. Default: the newest.")
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Of the step that earned most when it was evaluated.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as one JSON document.")
    ] = False,
) -> None:
    """Write a checkpoint of a run for Hugging Face's libraries and for engines."""
    with edge():
        from rltrain.loop.export import best_of
        from rltrain.loop.export import export as exported

        if best and step is not None:
            raise Refused("--best and --step name two checkpoints; leave one out")
        made = exported(run, out, best_of(run) if best else step)
        if as_json:
            print(json.dumps({**asdict(made), "directory": str(made.directory)}))
        else:
            print(f"{out}: step {made.step}, {made.parameters:,} parameters in {made.dtype}")
