# SPDX-License-Identifier: Apache-2.0
"""``envkit show``: the text and the page of an earlier preflight, made again from its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from envkit.fault import HarnessError
from envkit.preflight.outputs import write_whole
from envkit.preflight.report_html import to_html
from envkit.preflight.report_read import read_report
from envkit.preflight.report_text import PLAIN_WIDTH, print_report


def show(path: Path, html: Path | None) -> None:
    """Prints the report and writes its page where one is asked for.

    Raises:
        HarnessError: it cannot be read, or the page cannot be written.
    """
    report = read_report(path)
    if html is not None:
        try:
            write_whole(html, to_html(report).encode())
        except OSError as error:
            raise HarnessError(
                f"--html {html}: {error.strerror}; name a file in a directory you can write"
            ) from error
    console = Console()
    print_report(report, console if console.is_terminal else Console(width=PLAIN_WIDTH))
