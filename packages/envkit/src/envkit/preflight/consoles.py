# SPDX-License-Identifier: Apache-2.0
"""Where a report is printed."""

from __future__ import annotations

from typing import Final

from rich.console import Console

PLAIN_WIDTH: Final = 120
"""Columns where the output is no terminal, so that the same run always prints the same."""


def report_console(*, stderr: bool = False, highlight: bool = True) -> Console:
    """As wide as the terminal, where it is one."""
    console = Console(stderr=stderr, highlight=highlight)
    if console.is_terminal:
        return console
    return Console(stderr=stderr, highlight=highlight, width=PLAIN_WIDTH)
