# SPDX-License-Identifier: Apache-2.0
"""To come."""

from starlette.routing import Route

from envkit.servers.config import GatewayConfig


def data_routes(config: GatewayConfig) -> list[Route]:
    """To come."""
    return []
