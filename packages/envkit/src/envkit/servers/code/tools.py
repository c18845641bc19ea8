# SPDX-License-Identifier: Apache-2.0
"""To come."""

from envkit.servers.tool import Tool

TOOLS: tuple[Tool, ...] = ()
