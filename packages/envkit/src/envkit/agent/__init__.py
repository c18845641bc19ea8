# SPDX-License-Identifier: Apache-2.0
"""What acts in a trial.

mcp_client  one server, one supervisor, and calls that always come back on time
replay      the agent that replays a task's recorded tool calls through the gateway
"""
