# SPDX-License-Identifier: Apache-2.0
"""What a task directory and its world are once they have been read.

A `Task` is one Harbor task directory; a `World` is the documents, servers and packages that
several tasks share. Both are values: nothing here touches the disk. A digest names content:
two tasks (or worlds) with the same digest give an agent the same bytes.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    """Whether a task with this problem may run."""

    ERROR = "error"
    """The task cannot run, or its reward could not be trusted."""
    WARNING = "warning"
    """The task runs, but something about it is worth a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding of a static check: what is wrong, where, and what to do."""

    code: str
    """Stable kebab-case name, for filters and tests."""
    severity: Severity
    where: str
    """A file relative to the task, with the key or line: `task.toml:[agent].timeout_sec`."""
    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.severity} {self.code} {self.where}: {self.message}; {self.fix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A script that writes a world's documents: `python SCRIPT OUT` fills OUT."""

    script: Path
    packages: tuple[str, ...]
    """Distributions whose versions shape the output, so they are part of the world's digest."""
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The place a task plays in: documents, tool servers and promised packages."""

    name: str
    dir: Path
    digest: str
    """SHA-256 over the world's files and the versions of its generator's packages."""
    servers: tuple[str, ...]
    """Server ids in the order they are mounted, such as `pdf_server`."""
    tools: tuple[str, ...] = ()
    """Those of their tools that are offered; empty for all of them."""
    packages: tuple[str, ...]
    """Python distributions the prompt promises in the agent's box."""
    expected_tools: tuple[str, ...]
    """Tools that must be listed before an agent acts; one absent is a server fault."""
    root: str
    """Where the documents are in the agent's box."""
    generator: Generator | None
    """None: the documents lie in the world's directory, under `filesystem/`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One Harbor task directory, read and checked enough to be run."""

    name: str
    """The directory's name: unique among its siblings, and fit for a file name."""
    dir: Path
    digest: str
    """SHA-256 over the task's files and its world's digest."""
    instruction: str
    world: World | None
    agent_timeout_s: float
    verifier_timeout_s: float
    calls_path: Path | None
    """The recorded tool calls of the oracle, when the task ships them."""
    has_oracle: bool
    """True when `solution/solve.sh` exists."""
