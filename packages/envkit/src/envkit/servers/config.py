# SPDX-License-Identifier: Apache-2.0
"""What one gateway serves, and within which limits.

Every limit has a unit in its name and a reason beside it. Nothing here touches the disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SERVERS = ("filesystem_server", "code_execution_server", "pdf_server")
SHORT_NAMES = {
    "filesystem": "filesystem_server",
    "fs": "filesystem_server",
    "code_execution": "code_execution_server",
    "code": "code_execution_server",
    "pdf": "pdf_server",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """Bounds on one tool call."""

    file_s: float = 20.0
    """Listing, reading, copying: local disk, so seconds already mean trouble."""
    document_s: float = 45.0
    """Parsing a document: a 600-page PDF takes about 10 s when every page is read."""
    command_s: float = 60.0
    """A command, unless `timeout_s` asks for less: what the peer allows, and below the 90 s that a
    client waits for any call."""
    text_chars: int = 40_000
    """Text in one result, about 10k tokens; the rest is behind `next` or in a spill file."""
    transfer_s: float = 300.0
    """Populate or snapshot of one world."""
    command_output_bytes: int = 1 << 20
    """Output kept of one command; beyond it the middle is dropped and counted."""
    child_memory_mib: int = 1024
    """What parsing one file may add to the gateway's own size."""
    children: int = 12
    """Calls worked on at once; a thirteenth waits inside its own deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """One gateway: its roots, its servers and its limits."""

    root: Path = Path("/filesystem")
    """Documents. Tool paths start with `/` and mean this folder."""
    apps_data: Path = Path("/.apps_data")
    """State of mail, chat and calendar; never visible to agent code."""
    parsed: Path | None = None
    """Documents of the world laid out beforehand (see `envkit.servers.pdf.shelf`)."""
    servers: tuple[str, ...] = SERVERS
    tools: tuple[str, ...] = ()
    """Full names of those tools of the servers that are offered; empty for all of them."""
    token: str = ""
    """Bearer token of the agent socket. Empty refuses every call over HTTP."""
    surface: str = "individual"
    read_only: bool = False
    """Only tools without effect are listed; the others answer `read_only`."""
    journal: Path | None = None
    """Call ids and their results (JSON Lines). None keeps them in memory."""
    call_log: Path | None = None
    """One JSON line a call: tool, code, seconds, characters."""
    command_root: str = "/filesystem"
    """Where `root` lies for agent code, which may see another tree than the gateway."""
    command_env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the environment of the agent's commands, as PATH of another image."""
    limits: ToolLimits = field(default_factory=ToolLimits)


def server_names(names: str) -> tuple[str, ...]:
    """Full server ids from a comma-separated list of full or short names.

    Raises ValueError naming the unknown one and the known ones.
    """
    found: list[str] = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        full = SHORT_NAMES.get(name, name)
        if full not in SERVERS:
            known = ", ".join(SERVERS)
            raise ValueError(f"unknown server {name!r}; known servers: {known}")
        found.append(full)
    return tuple(dict.fromkeys(found))
