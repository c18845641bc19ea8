# SPDX-License-Identifier: Apache-2.0
"""A finding, and what probes read this machine through.

Contract: a probe reads only through its ``Machine``, so that it can be tested on a tree of files
that is another machine; it raises nothing for what is absent, because that is what it is to find.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from envkit.doctor.ask import Answer, ask
from envkit.preflight.kernel_files import KERNEL, Roots


class Status(StrEnum):
    OK = "ok"
    """It is as it should be."""
    INFO = "info"
    """Nothing is wrong; something optional is absent, or good to know."""
    WARN = "warn"
    """Trials run, and something about them is slower, weaker or less certain."""
    FAIL = "fail"
    """Trials in local boxes cannot run, or something is left over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing about this machine."""

    name: str
    """The same for the same probe on every machine, such as ``user namespaces``."""
    status: Status
    text: str
    fix: str = ""
    """One line: what to run, raise or install; empty where there is nothing to do."""
    needed_for: str = ""
    """What is the worse for it; empty where all trials are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine, or one that a test made up."""

    roots: Roots = KERNEL
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    uid: int = field(default_factory=os.getuid)
    find: Callable[[str], str | None] = shutil.which
    """A program by name, as a shell would find it."""
    ask: Callable[[Sequence[str]], Answer] = ask
    """Runs a program and gives its answer, within a deadline."""
    limit: Callable[[int], tuple[int, int]] = resource.getrlimit
    """Soft and hard limit of this process."""
    run_dir: Path = field(default_factory=Path.cwd)
    """Where a run's files would go."""
