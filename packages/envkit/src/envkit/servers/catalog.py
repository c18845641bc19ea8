# SPDX-License-Identifier: Apache-2.0
"""Which tools a gateway offers, by full name."""

import difflib
from collections.abc import Mapping

from envkit.servers.code.tools import TOOLS as CODE
from envkit.servers.config import GatewayConfig
from envkit.servers.contract import ToolFault
from envkit.servers.filesystem import TOOLS as FILESYSTEM
from envkit.servers.pdf.tools import TOOLS as PDF
from envkit.servers.tool import Effect, Tool, full_name

ALL: tuple[Tool, ...] = (*FILESYSTEM, *CODE, *PDF)


def offered(config: GatewayConfig) -> dict[str, Tool]:
    """The configured tools of the configured servers; those without effect when it is read-only."""
    return {
        full_name(tool): tool
        for tool in ALL
        if tool.server in config.servers
        and full_name(tool) in (config.tools or (full_name(tool),))
        and not (config.read_only and tool.effect != Effect.READ)
    }


def find(tools: Mapping[str, Tool], name: str, *, read_only: bool) -> Tool:
    """The tool of that name; raises ToolFault naming the nearest one."""
    if name in tools:
        return tools[name]
    if read_only and any(full_name(tool) == name for tool in ALL):
        raise ToolFault(
            "read_only",
            f"{name} would change the world, which is read-only here.",
            fix="Answer from what can be read.",
        )
    near = difflib.get_close_matches(name, list(tools), n=3, cutoff=0.4)
    raise ToolFault(
        "unknown_tool",
        f"There is no tool {name[:80]!r}.",
        fix=f"Nearest: {', '.join(near)}." if near else "List the tools.",
    )
