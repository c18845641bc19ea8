# SPDX-License-Identifier: Apache-2.0
"""MCP office servers behind one gateway, in the order a call flows through them.

config      what one gateway serves: roots, servers, token, limits
contract    the one envelope every result and every error comes in
arguments   accepted argument forms, and the flat schema that advertises them
tool        a tool: name, arguments, effect, the function that does the work
confine     opens paths so that none leaves its root
child       runs that function where it can be killed
command     runs the agent's own commands, in another box
filesystem, code, pdf   the tools themselves
journal     a call id is executed once; its result is stored
desk        takes one call through all of the above and logs it
protocol    the desk as an MCP server
guard       token, Host and Origin
remembered  what every gateway with the same tools answers, made once a process
data        populate and snapshot, on a host-side socket only
gateway     HTTP: the apps, serving on open sockets, warming up before a fork
stdio       the same desk over standard input and output

Importing this package loads nothing heavy; ``gateway`` imports mcp.
"""
