# SPDX-License-Identifier: Apache-2.0
"""Every key that Harbor reads from a task.toml, and every key of our world.toml.

Harbor ignores a key it does not know: `[agent] timeout_secs = 5` leaves the timeout unlimited.
This table makes the misspelling visible without importing Harbor; a test compares it with the
models of the Harbor that is installed. None marks a value that is not looked into: a scalar, a
list of scalars, or a free map such as `env`. An array of tables is written like a table.
"""

from collections.abc import Mapping

type Keys = Mapping[str, "Keys | None"]

_NETWORK: Keys = {"network_mode": None, "allowed_hosts": None}

_HEALTHCHECK: Keys = {
    "command": None,
    "interval_sec": None,
    "timeout_sec": None,
    "start_period_sec": None,
    "start_interval_sec": None,
    "retries": None,
}

_MCP_SERVER: Keys = {
    "name": None,
    "transport": None,
    "url": None,
    "command": None,
    "args": None,
    "headers": None,
}

_ENVIRONMENT: Keys = {
    **_NETWORK,
    "build_timeout_sec": None,
    "docker_image": None,
    "os": None,
    "cpus": None,
    "memory_mb": None,
    "storage_mb": None,
    "gpus": None,
    "gpu_types": None,
    "tpu": {"type": None, "topology": None},
    "mcp_servers": _MCP_SERVER,
    "env": None,
    "skills_dir": None,
    "healthcheck": _HEALTHCHECK,
    "workdir": None,
    "allow_internet": None,
}

_AGENT: Keys = {**_NETWORK, "timeout_sec": None, "user": None}

_VERIFIER: Keys = {
    **_NETWORK,
    "timeout_sec": None,
    "env": None,
    "user": None,
    "environment_mode": None,
    "environment": _ENVIRONMENT,
    "collect": {"command": None, "service": None, "timeout_sec": None, "user": None},
}

_ARTIFACT: Keys = {"source": None, "destination": None, "exclude": None, "service": None}

TASK_KEYS: Keys = {
    "schema_version": None,
    "task": {
        "name": None,
        "version": None,
        "description": None,
        "authors": {"name": None, "email": None},
        "keywords": None,
    },
    "metadata": None,
    "verifier": _VERIFIER,
    "agent": _AGENT,
    "environment": _ENVIRONMENT,
    "solution": {"env": None},
    "source": None,
    "multi_step_reward_strategy": None,
    "steps": {
        "name": None,
        "agent": _AGENT,
        "verifier": _VERIFIER,
        "min_reward": None,
        "healthcheck": _HEALTHCHECK,
        "artifacts": _ARTIFACT,
    },
    "artifacts": _ARTIFACT,
}

MIXED_LISTS = frozenset({"artifacts"})
"""Keys whose list may hold plain strings beside tables."""

DEPRECATED: Mapping[tuple[str, str], str] = {
    ("", "version"): "schema_version",
    ("environment", "memory"): "memory_mb",
    ("environment", "storage"): "storage_mb",
    ("environment", "allow_internet"): "network_mode",
}
"""(last table name, key) -> what Harbor maps it to. The first three are not in its models."""

WORLD_KEYS: Keys = {
    "name": None,
    "description": None,
    "servers": None,
    "tools": None,
    "packages": None,
    "expected_tools": None,
    "root": None,
    "generator": {"script": None, "packages": None, "timeout_s": None},
}
