# SPDX-License-Identifier: Apache-2.0
"""What a gateway offers and what listing it costs a model, for `envkit serve --describe`."""

import json

from envkit.servers import catalog
from envkit.servers.arguments import input_schema
from envkit.servers.config import GatewayConfig
from envkit.servers.tool import Tool, full_name

CHARS_A_TOKEN = 4
"""A rough measure for JSON and English; tokenizers differ by a fifth."""
LIST_TOKENS = {"individual": 4000}
"""The budget of a surface: what its whole list may cost in every prompt."""


def tokens(tool: Tool) -> int:
    """About how many tokens the tool's name, description and arguments cost in a prompt."""
    shown = [full_name(tool), tool.about, input_schema(tool.arguments)]
    return len(json.dumps(shown)) // CHARS_A_TOKEN


def describe(config: GatewayConfig) -> str:
    """One line a tool, then the sum against the budget of the surface."""
    tools = catalog.offered(config).values()
    lines = [f"{full_name(tool):45} {tokens(tool):5}  {tool.about}" for tool in tools]
    spent, budget = sum(map(tokens, tools)), LIST_TOKENS[config.surface]
    lines.append(f"{len(lines)} tools, about {spent} of {budget} tokens in a prompt")
    return "\n".join(lines)
