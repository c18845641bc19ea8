# SPDX-License-Identifier: Apache-2.0
"""Programs that only some environments and tasks need: Docker, LibreOffice, Chromium.

Contract: a program that is absent is no fault of the machine; one that is there and does not work
is said as a warning. None of them can hold the others up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.doctor.types import Finding, Machine, Status

DOCKER: Final = "--env harbor.environments.docker.docker:DockerEnvironment"
OFFICE: Final = ("soffice", "libreoffice")
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def examine(machine: Machine) -> Iterator[Finding]:
    """Each program, by what it answers."""
    yield from _docker(machine)
    yield _program(machine, "LibreOffice", OFFICE, "apt-get install libreoffice", "recalculation")
    yield _program(machine, "Chromium", BROWSERS, "apt-get install chromium", "pages as pictures")


def _docker(machine: Machine) -> Iterator[Finding]:
    client = machine.find("docker")
    if client is None:
        yield Finding(
            name="Docker",
            status=Status.INFO,
            text="not installed",
            fix="apt-get install docker.io docker-compose-v2",
            needed_for=DOCKER,
        )
        return
    daemon = machine.ask([client, "version", "--format", "{{.Server.Version}}"])
    yield Finding(
        name="Docker",
        status=Status.OK if daemon.ok else Status.WARN,
        text=f"{client}, daemon {daemon.line}"
        if daemon.ok
        else f"{client} is there, its daemon is not: {daemon.line}",
        fix="" if daemon.ok else _daemon_fix(daemon.text),
        needed_for=DOCKER,
    )
    compose = machine.ask([client, "compose", "version", "--short"])
    yield Finding(
        name="Docker Compose",
        status=Status.OK if compose.ok else Status.WARN,
        text=compose.line if compose.ok else f"docker has none: {compose.line}",
        fix="" if compose.ok else "apt-get install docker-compose-v2",
        needed_for=DOCKER,
    )


def _daemon_fix(said: str) -> str:
    if "permission denied" in said.lower():
        return "sudo usermod -aG docker $USER, then log in again"
    return "sudo systemctl start docker, or name another daemon in DOCKER_HOST"


def _program(
    machine: Machine, name: str, commands: tuple[str, ...], install: str, purpose: str
) -> Finding:
    found = next((path for each in commands if (path := machine.find(each))), None)
    if found is None:
        return Finding(
            name=name, status=Status.INFO, text="not installed", fix=install, needed_for=purpose
        )
    answer = machine.ask([found, "--version"])
    return Finding(
        name=name,
        status=Status.OK if answer.ok else Status.WARN,
        text=f"{found}, {answer.last}",
        fix="" if answer.ok else f"run {found} --version and see; or {install} again",
        needed_for=purpose,
    )
