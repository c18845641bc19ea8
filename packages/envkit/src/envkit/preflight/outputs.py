# SPDX-License-Identifier: Apache-2.0
"""The forms of a report for other programs: JUnit XML, Markdown, the quarantine list.

Contract: where a file would go is checked before the first trial; each appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from envkit.fault import HarnessError
from envkit.preflight.junit import to_junit
from envkit.preflight.markdown import to_markdown
from envkit.preflight.quarantine import to_bytes
from envkit.preflight.types import Report

FORMS: Final[Mapping[str, Callable[[Report], bytes]]] = {
    "junit": to_junit,
    "markdown": lambda report: to_markdown(report).encode(),
    "quarantine": to_bytes,
}
"""By option."""


def check_outputs(files: Mapping[str, Path | None]) -> None:
    """Raises HarnessError where a file could not be written in its place."""
    for form, path in files.items():
        if path is None:
            continue
        if path.is_dir():
            raise HarnessError(f"--{form} {path}: is a directory; name a file in it")
        if not path.absolute().parent.is_dir():
            raise HarnessError(f"--{form} {path}: its directory is not there; make it first")


def write_outputs(files: Mapping[str, Path | None], report: Report) -> None:
    """Writes those that were asked for.

    Raises:
        OSError: one of them cannot be written.
    """
    for form, path in files.items():
        if path is not None:
            write_whole(path, FORMS[form](report))


def write_whole(path: Path, data: bytes) -> None:
    """Under another name first: a reader never sees half a file."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
