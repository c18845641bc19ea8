# SPDX-License-Identifier: Apache-2.0
"""Reading a world's `world.toml`, and finding the world that a task plays in.

A task names its world in `[metadata] world = "NAME"`; it lies at `../worlds/NAME/` beside the
task. Functions here raise `Flawed` with one problem; `lint` and `load_task` decide what that
means to their callers. Where it is, `load_world` says as seen from the world's directory and
`task_world` as seen from the task's.
"""

import re
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from envkit.task.digest import tree_digest
from envkit.task.keys import WORLD_KEYS
from envkit.task.keys_check import unknown_keys
from envkit.task.read import Flawed, Table, error, read_toml, strings, table
from envkit.task.settings import MAX_TIMEOUT_S, number
from envkit.task.tree import escapes
from envkit.task.types import Generator, World

DEFAULT_ROOT = "/filesystem"
DEFAULT_GENERATOR_TIMEOUT_S = 120.0
"""A generator of a dozen documents takes seconds; two minutes is a hang."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def world_dir(task_dir: Path, config: Table) -> Path | None:
    """The directory of the task's world, or None where the task declares no world."""
    name = table(config, "metadata").get("world")
    if name is None:
        return None
    where = "task.toml:[metadata].world"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        fix = "name a directory under ../worlds/, in lower case and without slashes"
        raise Flawed(error("world-name", where, f"{name!r} is no world name", fix))
    found = task_dir.parent / "worlds" / name
    if not found.is_dir():
        message = f"no directory ../worlds/{name}/"
        raise Flawed(error("world-missing", where, message, "add the world or correct the name"))
    return found


def task_world(task_dir: Path, config: Table) -> World | None:
    """The task's world, checked, or None where the task declares none; raises `Flawed`."""
    found = world_dir(task_dir, config)
    if found is None:
        return None
    try:
        return load_world(found)
    except Flawed as flaw:
        where = f"../worlds/{found.name}/{flaw.problem.where}"
        raise Flawed(replace(flaw.problem, where=where)) from flaw


def load_world(directory: Path) -> World:
    """The world in `directory`, checked; raises `Flawed`."""
    where = "world.toml"
    config = read_toml(directory / where)
    for problem in unknown_keys(config, WORLD_KEYS, where) + escapes(directory):
        raise Flawed(problem)
    if config.get("name", directory.name) != directory.name:
        fix = f'write name = "{directory.name}"'
        raise Flawed(error("world-name", f"{where}:name", "not the directory's name", fix))
    generator = _generator(directory, config, where)
    built_with = generator.packages if generator else ()
    servers = _strings(config, "servers", where)
    tools = _tools(config, servers, where)
    return World(
        name=directory.name,
        dir=directory.resolve(),
        digest=tree_digest(directory, [f"{name}=={_version(name)}" for name in built_with]),
        servers=servers,
        tools=tools,
        packages=_strings(config, "packages", where),
        expected_tools=_expected(config, tools, where),
        root=_root(config, where),
        generator=generator,
    )


def _tools(config: Table, servers: tuple[str, ...], where: str) -> tuple[str, ...]:
    tools = _strings(config, "tools", where)
    for tool in tools:
        if not tool.startswith(tuple(f"{name}_" for name in servers)):
            message, fix = (
                f"{tool} belongs to no server",
                f"servers: {', '.join(servers) or 'none'}",
            )
            raise Flawed(error("world-tools", f"{where}:tools", message, fix))
    return tools


def _expected(config: Table, tools: tuple[str, ...], where: str) -> tuple[str, ...]:
    """A world that says which tools are offered has said which must be listed."""
    expected = _strings(config, "expected_tools", where)
    if tools and expected and {*tools} != {*expected}:
        message = "not the tools that are offered"
        fix = "leave it out, or write the same as in tools"
        raise Flawed(error("world-tools", f"{where}:expected_tools", message, fix))
    return expected or tools


def _generator(directory: Path, config: Table, where: str) -> Generator | None:
    settings = table(config, "generator")
    if not settings:
        return _documents(directory, where)
    place = f"{where}:[generator]"
    script = settings.get("script")
    if not isinstance(script, str) or not _is_own_file(directory, script):
        message = f"no script {script!r} in the world"
        raise Flawed(error("world-generator", place, message, "name a Python file beside it"))
    timeout_s = number(settings.get("timeout_s", DEFAULT_GENERATOR_TIMEOUT_S))
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        message = f"timeout_s must lie above 0 and at most {MAX_TIMEOUT_S:.0f}"
        raise Flawed(error("world-generator", place, message, "set seconds, such as 120"))
    packages = _strings(settings, "packages", place)
    return Generator(script=directory / script, packages=packages, timeout_s=timeout_s)


def _is_own_file(directory: Path, name: str) -> bool:
    path = (directory / name).resolve()
    return path.is_file() and path.is_relative_to(directory.resolve())


def _documents(directory: Path, where: str) -> None:
    if not (directory / "filesystem").is_dir():
        message = "neither a [generator] nor a directory filesystem/"
        raise Flawed(error("world-empty", where, message, "add one of the two"))


def _strings(config: Table, key: str, where: str) -> tuple[str, ...]:
    found = strings(config, key)
    if found is None:
        fix = f'write {key} = ["...", "..."]'
        raise Flawed(error("world-value", f"{where}:{key}", "not a list of strings", fix))
    return found


def _root(config: Table, where: str) -> str:
    root = config.get("root", DEFAULT_ROOT)
    if not isinstance(root, str) or not root.startswith("/") or ".." in root.split("/"):
        fix = f'write root = "{DEFAULT_ROOT}"'
        raise Flawed(error("world-value", f"{where}:root", "not an absolute path", fix))
    return root


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"
