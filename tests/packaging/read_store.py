# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON what the installed rltrain takes of a store, or refuses it as a command does."""

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

import typer

from rltrain.batch.source import recorded
from rltrain.cli_edge import edge


def taken(directory: Path) -> dict[str, Any]:
    """Groups by their rows, samples by their fields, and what was left out."""
    found = recorded(directory)
    return {
        "groups": {each.name: [row.trajectory_id for row in each.rows] for each in found.groups},
        "evaluations": found.evaluations,
        "damaged": found.damaged,
        "newest": found.version,
        "samples": [dataclasses.asdict(each) for each in found.samples(found.groups)],
    }


def plain(value: Any) -> Any:
    """As JSON has it: an array is a list, and what is no number is null."""
    match value:
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case float() if math.isnan(value):
            return None
        case _:
            return plain(value.tolist()) if hasattr(value, "tolist") else value


if __name__ == "__main__":
    try:
        with edge():
            print(json.dumps(plain(taken(Path(sys.argv[1]))), allow_nan=False))
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
