# SPDX-License-Identifier: Apache-2.0
"""What acts in a trial.

mcp_http     connections to one server that are kept while they are good
mcp_events   server-sent events out of bytes as they come
mcp_wire     one message out, and the one that answers it
mcp_session  both eras of the protocol behind one way to ask
mcp_results  tools and results as a server gives them, held to what is relied on
mcp_faults   what a connection and a server come to, as faults
mcp_client   one server, and calls that always come back on time
replay       the agent that replays a task's recorded tool calls through the gateway
"""
