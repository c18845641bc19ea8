# SPDX-License-Identifier: Apache-2.0
"""Machines made of files: an Ubuntu that restricts namespaces, containers, each kind of cgroups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envkit.doctor.ask import Answer
from envkit.doctor.types import Machine
from envkit.preflight.kernel_files import Roots

HOST_STATUS = "Name:\tpython3\nCapEff:\t0000000000000000\nSeccomp:\t0\n"
CONTAINER_STATUS = "Name:\tpython3\nCapEff:\t00000000a80425fb\nSeccomp:\t2\n"

UBUNTU: dict[str, str] = {
    "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
    "proc/sys/kernel/unprivileged_userns_clone": "1\n",
    "proc/sys/user/max_user_namespaces": "127000\n",
    "proc/self/status": HOST_STATUS,
    "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-1.scope\n",
    "proc/meminfo": "MemTotal: 32000000 kB\nMemAvailable: 24000000 kB\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n",
    "sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope/cgroup.subtree_control": "\n",
}
"""Ubuntu 24.04: version 2, nothing delegated, AppArmor in the way."""

CONTAINER: dict[str, str] = {
    ".dockerenv": "",
    "proc/sys/user/max_user_namespaces": "127000\n",
    "proc/self/status": CONTAINER_STATUS,
    "proc/self/cgroup": "0::/\n",
    "sys/fs/cgroup/cgroup.controllers": "memory\n",
    "sys/fs/cgroup/cgroup.subtree_control": "memory\n",
}
"""A container of Docker's with its own seccomp filter."""

HARDENED: dict[str, str] = {
    "proc/sys/user/max_user_namespaces": "0\n",
    "proc/sys/kernel/unprivileged_userns_clone": "0\n",
    "proc/self/status": HOST_STATUS,
}
"""Two settings in the way, and no control groups mounted."""

VERSION_1: dict[str, str] = {
    "proc/sys/user/max_user_namespaces": "127000\n",
    "proc/self/status": HOST_STATUS,
    "sys/fs/cgroup/memory/cgroup.procs": "",
    "sys/fs/cgroup/pids/cgroup.procs": "",
}


def no_answer(command: Sequence[str]) -> Answer:
    raise AssertionError(f"nothing was to be asked, least of all {command}")


@dataclass
class Programs:
    """Programs by name, and what each answers by its arguments."""

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    """``docker version``: the beginning of a command."""
    asked: list[str] = field(default_factory=list[str])

    def find(self, name: str) -> str | None:
        known = any(command.split()[0] == name for command in self.answers)
        return f"/usr/bin/{name}" if known else None

    def ask(self, command: Sequence[str]) -> Answer:
        line = " ".join([Path(command[0]).name, *command[1:]])
        self.asked.append(line)
        return next(text for start, text in self.answers.items() if line.startswith(start))


def says(text: str, status: int | None = 0) -> Answer:
    return Answer(status=status, text=text)


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Machine]:
    """A machine of these files, on which nothing is installed but what is said."""

    def make(files: dict[str, str], programs: Programs | None = None, **more: Any) -> Machine:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        installed = programs or Programs()
        values: dict[str, Any] = {
            "roots": Roots(
                proc=tmp_path / "proc", cgroup=tmp_path / "sys/fs/cgroup", root=tmp_path
            ),
            "env": {},
            "uid": 1000,
            "find": installed.find,
            "ask": installed.ask if programs else no_answer,
            "run_dir": tmp_path,
        }
        return Machine(**{**values, **more})

    return make
