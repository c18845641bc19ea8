# SPDX-License-Identifier: Apache-2.0
"""``rltrain report``: from a run's directory to a page and three lines, or one line on why not."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rltrain.cli_edge import edge


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the page goes. Default: RUN/report.html."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as one JSON document.")
    ] = False,
) -> None:
    """Write the report of a run as one HTML page that opens anywhere."""
    with edge("name a FILE that can be written with --out"):
        from envkit.durable import write_durably
        from rltrain.track.page import to_html
        from rltrain.track.run import read_run
        from rltrain.track.summary import lines, summarise

        found = read_run(run)
        summary = summarise(found)
        page = (out or run / "report.html").absolute()
        write_durably(page, to_html(found, summary).encode("utf-8", "replace"))
        if as_json:
            print(json.dumps({"run": str(found.path), "page": str(page), **asdict(summary)}))
            return
        print(page, *lines(summary), sep="\n")
        if summary.remark:
            print(f"rltrain: metrics.jsonl: {summary.remark}", file=sys.stderr)
