# SPDX-License-Identifier: Apache-2.0
"""The controls: what the model's own code does in its box, through the agent's own tool.

Not chaos, but what chaos must not be taken for, and the other way round.
"""

from __future__ import annotations

from typing import Any, Final

from envkit.agent.mcp_client import Endpoint, ToolClient
from envkit.sandbox.spec import GatewayAddress

_FILLS = """\
import itertools
for number in itertools.count():
    open(f"/filesystem/{number}", "x").close()
"""
"""By names: a box whose memory is no larger than its storage runs out of memory by bytes first."""

_CODE: Final = "code_execution_server_code_exec"
DEEDS: Final[dict[str, dict[str, Any]]] = {
    "model-kills-all": {"code": "kill -9 -1; kill -9 1; kill 1"},
    "model-endless": {"code": "sleep 1000", "timeout_s": 1},
    "model-memory": {
        "code": "kept = []\nwhile True: kept.append(bytes(range(256)) * (1 << 16))",
        "language": "python",
    },
    "model-disk": {"code": _FILLS, "language": "python"},
    "model-box": {"code": "rm -rf /logs; echo > /logs"},
}
"""Arguments of the tool, by kind."""


async def act(kind: str, address: GatewayAddress) -> str:
    """Has the model's code do it; how its command ended, as the tool says.

    Raises:
        EnvkitError: the tool did not answer.
    """
    async with ToolClient.open(Endpoint(url=address.url, token=address.token)) as tools:
        return (await tools.call(_CODE, DEEDS[kind])).code or "ok"
