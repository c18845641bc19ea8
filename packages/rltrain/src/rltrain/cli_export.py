# SPDX-License-Identifier: Apache-2.0
"""``rltrain export``: a run's checkpoint as a directory that engines load."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rltrain.cli_edge import edge


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.")],
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Where it goes; a new directory.")],
    step: Annotated[
        int | None, typer.Option(min=1, help="Of which checkpoint. Default: the newest.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as one JSON document.")
    ] = False,
) -> None:
    """Write a checkpoint of a run for Hugging Face's libraries and for engines."""
    with edge():
        from rltrain.loop.export import export as exported

        made = exported(run, out, step)
        if as_json:
            print(json.dumps({**asdict(made), "directory": str(made.directory)}))
        else:
            print(f"{out}: step {made.step}, {made.parameters:,} parameters in {made.dtype}")
