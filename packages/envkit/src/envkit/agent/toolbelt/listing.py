# SPDX-License-Identifier: Apache-2.0
"""Which tools a trial's servers list, held to those its task and its world expect.

Contract: a difference is a fault of the servers and never a smaller or larger toolbelt. What was
listed stands in the ledger either way.
"""

from __future__ import annotations

from collections.abc import Collection

from envkit.agent.mcp_client import Endpoint, Tool, ToolClient
from envkit.deadline import Budgets
from envkit.fault import ExtraTools, MissingTools
from envkit.sandbox.ledger import ledger


async def list_checked(
    client: ToolClient, expected: Collection[str], needed: Collection[str] = ()
) -> tuple[Tool, ...]:
    """List the tools; ``expected`` are all there must be, none says nothing about the others.

    Raises:
        MissingTools: one that is expected or needed is not listed.
        ExtraTools: one is listed that is not expected.
        EnvkitError: what `ToolClient` raises.
    """
    tools = await client.list_tools()
    check_listed(tools, expected, needed)
    return tools


def check_listed(
    tools: Collection[Tool], expected: Collection[str], needed: Collection[str] = ()
) -> None:
    """The same for tools that were listed already; raises MissingTools and ExtraTools."""
    listed = {tool.name for tool in tools}
    ledger().tools = tuple(sorted(listed))
    if missing := {*expected, *needed} - listed:
        raise MissingTools(f"not listed: {_named(missing)}; listed: {_named(listed)}")
    if expected and (extra := listed - {*expected}):
        raise ExtraTools(f"listed but not expected: {_named(extra)}")


async def check_toolbelt(endpoint: Endpoint, expected: Collection[str], budgets: Budgets) -> None:
    """Ask the servers once, for an agent that does not; raises as `list_checked`."""
    async with ToolClient.open(endpoint, budgets) as client:
        await list_checked(client, expected)


def _named(tools: Collection[str]) -> str:
    return ", ".join(sorted(tools)) or "none"
