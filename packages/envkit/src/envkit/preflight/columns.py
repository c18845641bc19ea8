# SPDX-License-Identifier: Apache-2.0
"""A table on a terminal: names at the left, numbers at the right, no lines."""

from __future__ import annotations

from rich.table import Table


def columns(name: str, *numbers: str, left: tuple[str, ...] = ()) -> Table:
    """An empty one; the columns of ``left`` hold text and may fold."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(name, no_wrap=True)
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    for text in left:
        table.add_column(text, overflow="fold")
    return table
