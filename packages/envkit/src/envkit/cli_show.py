# SPDX-License-Identifier: Apache-2.0
"""``envkit show``: trajectories as a person reads them, or the report of an earlier preflight."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from envkit.fault import HarnessError
from envkit.preflight.consoles import report_console
from envkit.preflight.outputs import write_whole
from envkit.preflight.report_html import to_html
from envkit.preflight.report_json import to_json
from envkit.preflight.report_read import REPORT_NAME, read_report
from envkit.preflight.report_text import print_report
from envkit.show.as_json import listing_json, story_json
from envkit.show.page import listing_html, story_html
from envkit.show.parts import Story
from envkit.show.rows import Listing, listing
from envkit.show.source import Source, one, rows, source_of
from envkit.show.story import tell
from envkit.show.terminal import print_listing, print_story
from envkit.show.texts import Texts


def show(
    path: Path,
    html: Path | None,
    *,
    name: str | None = None,
    tokenizer: Path | None = None,
    full: bool = False,
    as_json: bool = False,
) -> None:
    """Prints what there is at ``path`` and writes its page where one is asked for.

    Raises:
        HarnessError: there is nothing to show, or the page cannot be written.
    """
    source = source_of(path)
    if source is None or (source.kind == "trials" and name is None and _has_report(path)):
        _report(path, html, name, as_json=as_json)
    elif source.kind == "trial" or name is not None:
        _story(_tell(source, name, tokenizer), html, full=full, as_json=as_json)
    else:
        _listing(listing(rows(source)), html, as_json=as_json)


def _has_report(path: Path) -> bool:
    return (path / REPORT_NAME).exists()


def _tell(source: Source, name: str | None, tokenizer: Path | None) -> Story:
    if name is None:
        row = next(iter(rows(source)))
        if isinstance(row, Exception):
            raise row
    else:
        row = one(source, name)
    texts = Texts(places=source.places, given=tokenizer)
    ear = texts.ear(row.identity)
    notes = [f"no text: {why}; name the model: --tokenizer DIR" for why in texts.missing.values()]
    return tell(row, ear, notes)


def _story(story: Story, html: Path | None, *, full: bool, as_json: bool) -> None:
    if html is not None:
        _write(html, story_html(story))
    if as_json:
        print(json.dumps(story_json(story), indent=2))
    else:
        print_story(story, _console(), full=full)


def _listing(found: Listing, html: Path | None, *, as_json: bool) -> None:
    if html is not None:
        _write(html, listing_html(found))
    if as_json:
        print(json.dumps(listing_json(found), indent=2))
    else:
        print_listing(found, _console())


def _report(path: Path, html: Path | None, name: str | None, *, as_json: bool) -> None:
    if name is not None:
        raise HarnessError(f"{path}: no trajectories in it, so none of --id {name}")
    if path.is_dir() and not _has_report(path):
        raise HarnessError(
            f"{path}: holds neither trajectories nor a report; name the directory of a run"
        )
    report = read_report(path)
    if html is not None:
        _write(html, to_html(report))
    if as_json:
        print(json.dumps(to_json(report), indent=2))
    else:
        print_report(report, _console())


def _console() -> Console:
    return report_console(highlight=False)


def _write(html: Path, page: str) -> None:
    try:
        write_whole(html, page.encode())
    except OSError as error:
        raise HarnessError(
            f"--html {html}: {error.strerror}; name a file in a directory you can write"
        ) from error
