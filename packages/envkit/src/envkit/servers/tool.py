# SPDX-License-Identifier: Apache-2.0
"""A tool: its name, its arguments, its effect, and the function that does the work.

Two kinds. A `FileTool` is a plain function over the world's files; it runs in a forked child that
can be killed, so it may block. A `CommandTool` is a coroutine that asks the command runner.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from envkit.servers.arguments import Arguments
from envkit.servers.command import CommandRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.confine import Root
from envkit.servers.contract import Done
from envkit.servers.pdf.shelf import Shelf


class Effect(StrEnum):
    """What a call may change."""

    READ = "read"
    ADD = "add"
    """Adds, but overwrites nothing unless asked."""
    CHANGE = "change"
    """May overwrite or remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a file tool works on."""

    root: Root
    text_chars: int
    seconds: float
    """The call's own deadline; a tool with much to do stops early and answers with `next`."""
    starting: Callable[[], None]
    """To be called right before the first effect, so that a killed call knows if it had any."""
    known: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text remembered from earlier calls (see `Done.remember`)."""
    shelf: Shelf | None = None
    """Documents of this world that were laid out before any trial."""
    at_once: bool = False
    """The gateway itself waits: answer in a moment, without a parser, or raise NotAtOnce."""


class NotAtOnce(Exception):
    """What was asked for takes a child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTool:
    """A blocking function over files."""

    server: str
    name: str
    about: str
    arguments: type[Arguments]
    effect: Effect
    run: Callable[[World, Any], Done]
    document: bool = False
    """Parses a document: gets the longer deadline."""
    at_once: bool = False
    """May be asked to answer at once (see `World.at_once`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTool:
    """A coroutine over the command runner."""

    server: str
    name: str
    about: str
    arguments: type[Arguments]
    effect: Effect
    run: Callable[[CommandRunner, GatewayConfig, Any], Awaitable[Done]]


type Tool = FileTool | CommandTool


def full_name(tool: Tool) -> str:
    """The name on the wire: always prefixed by the server."""
    return f"{tool.server}_{tool.name}"
