# SPDX-License-Identifier: Apache-2.0
"""The settings of a task.toml that decide whether its reward can be trusted.

Bounded time, a verifier the agent cannot reach, no network, and artifacts that reach the
verifier. Harbor's defaults are the unsafe ones (no timeout, shared verifier, public network),
so what is absent is judged too.
"""

import math
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import cast

from envkit.task.read import Table, error, table, tables, warning
from envkit.task.types import Problem

MAX_TIMEOUT_S = 86_400.0
"""A day. A longer limit is no limit: it is meant to be an error someone sees."""
VERIFIER_TIMEOUT_S = 600.0
"""What Harbor gives a verifier that declares nothing."""

_RESOURCES = frozenset({"cpus", "memory_mb", "storage_mb"})
_NETWORK_MODES = ("no-network", "public", "allowlist")


def number(value: object) -> float:
    """The number, or NaN for what is none (booleans and strings are none)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value)


def agent_timeout_s(config: Table) -> float:
    """Seconds the agent may act; NaN where the task does not say so."""
    return number(table(config, "agent").get("timeout_sec"))


def verifier_timeout_s(config: Table) -> float:
    """Seconds the verifier may take."""
    return number(table(config, "verifier").get("timeout_sec", VERIFIER_TIMEOUT_S))


def check_timeouts(config: Table) -> Iterator[Problem]:
    """Errors for an agent without a limit and for limits that do not limit."""
    if "timeout_sec" not in table(config, "agent"):
        where, fix = "task.toml:[agent].timeout_sec", "set seconds, such as timeout_sec = 600"
        yield error("timeout-missing", where, "absent, so the agent may run for ever", fix)
    else:
        yield from _bounded("[agent].timeout_sec", agent_timeout_s(config))
    yield from _bounded("[verifier].timeout_sec", verifier_timeout_s(config))
    for key, where in _optional_timeouts(config):
        yield from _bounded(where, key)


def _optional_timeouts(config: Table) -> Iterator[tuple[float, str]]:
    environment = table(config, "environment")
    if "build_timeout_sec" in environment:
        yield number(environment["build_timeout_sec"]), "[environment].build_timeout_sec"
    for hook in tables(table(config, "verifier"), "collect"):
        yield number(hook.get("timeout_sec", 60.0)), "[verifier.collect].timeout_sec"


def _bounded(where: str, seconds: float) -> Iterator[Problem]:
    if not 0 < seconds <= MAX_TIMEOUT_S:
        message = f"not a number of seconds above 0 and at most {MAX_TIMEOUT_S:.0f}"
        yield error("timeout-absurd", f"task.toml:{where}", message, "set a limit that is one")


def check_steps(config: Table) -> Iterator[Problem]:
    """An error for a task of several steps: a trial here has one agent phase and one reward."""
    if config.get("steps"):
        fix = "make each step a task of its own"
        yield error("steps-unsupported", "task.toml:steps", "multi-step tasks do not run here", fix)


def is_separate(config: Table) -> bool:
    """Whether the verifier runs in a box of its own (Harbor: declared, or implied by one)."""
    verifier = table(config, "verifier")
    mode = verifier.get("environment_mode")
    return mode == "separate" if mode is not None else "environment" in verifier


def check_verifier(config: Table) -> Iterator[Problem]:
    """Errors for a verifier in the agent's box, and for one that is given nothing to judge."""
    mode = table(config, "verifier").get("environment_mode")
    if not is_separate(config):
        found = "shared" if mode is None else mode
        fix = 'set environment_mode = "separate" under [verifier]'
        message = f"mode {found!r}: a process the agent left behind can write the reward"
        yield error("verifier-shared", "task.toml:[verifier].environment_mode", message, fix)
    elif "artifacts" not in config:
        fix = 'list the paths it reads, such as artifacts = ["/logs/artifacts"]'
        message = "absent, so the separate verifier sees /logs/artifacts alone"
        yield error("artifacts-missing", "task.toml:artifacts", message, fix)


def check_network(config: Table) -> Iterator[Problem]:
    """Warnings for a phase that may reach the network, errors for a mode that does not exist."""
    yield from _network(table(config, "environment"), "[environment]", required=True)
    verifier = table(config, "verifier")
    own = "environment" in verifier
    yield from _network(table(verifier, "environment"), "[verifier.environment]", required=own)
    yield from _network(table(config, "agent"), "[agent]", required=False)
    yield from _network(verifier, "[verifier]", required=False)


def _network(section: Table, name: str, *, required: bool) -> Iterator[Problem]:
    mode = section.get("network_mode", "public" if required else "no-network")
    where, fix = f"task.toml:{name}.network_mode", 'set network_mode = "no-network"'
    if mode not in _NETWORK_MODES:
        known = ", ".join(_NETWORK_MODES)
        yield error("network-mode", where, f"{mode!r} is none of {known}", fix)
    elif mode != "no-network":
        yield warning("network-open", where, f"{mode}: results may depend on the network", fix)


def check_resources(config: Table) -> Iterator[Problem]:
    """Errors for sizes that Harbor would refuse only once the trial starts."""
    for name, section in (
        ("environment", table(config, "environment")),
        ("verifier.environment", table(table(config, "verifier"), "environment")),
    ):
        for key in _RESOURCES & set(section):
            amount = number(section[key])
            if not 0 < amount < math.inf:
                where = f"task.toml:[{name}].{key}"
                yield error(
                    "resource-absurd", where, "not a number above 0", f"such as {key} = 1024"
                )


def check_tools(config: Table) -> Iterator[Problem]:
    """A warning where the task plays in a world whose tools its agents are not told of."""
    has_world = "world" in table(config, "metadata")
    if has_world and not tables(table(config, "environment"), "mcp_servers"):
        where, fix = "task.toml:[[environment.mcp_servers]]", "add the world's gateway"
        yield warning("tools-undeclared", where, "absent: agents find no tool of the world", fix)


def check_artifacts(config: Table) -> Iterator[Problem]:
    """Errors for artifact sources that are not absolute paths without `..`."""
    for source in _artifact_sources(config.get("artifacts", [])):
        path = PurePosixPath(source)
        if not path.is_absolute() or ".." in path.parts:
            fix = 'write an absolute path, such as "/filesystem"'
            message = f"{source!r} could leave its root"
            yield error("artifact-path", "task.toml:artifacts", message, fix)


def _artifact_sources(artifacts: object) -> Iterator[str]:
    for entry in cast(list[object], artifacts) if isinstance(artifacts, list) else []:
        source = cast(Table, entry).get("source", "") if isinstance(entry, dict) else entry
        yield str(source)
