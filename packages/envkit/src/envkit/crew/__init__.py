# SPDX-License-Identifier: Apache-2.0
"""Trials begun one by one, on demand, by another process: a crew works in an environment of its own
and is told over a Unix socket what to do.

types     what a crew is told, and what it says
lines     the same as lines of JSON
client    for whoever begins trials: starts a crew, tells it, hears it; needs neither Harbor nor MCP
place     the directory of a crew: whose it is, and what an earlier one left in it
tasks     the tasks it knows, prepared once
resume    whether a trial can go on where it was killed
tell      what it says of a trial that ended
floor     trials that are begun, stored and said
serve     the process: `python -m envkit.crew SOCKET`

How trials are run is `envkit.preflight.floor`'s, how they become rows `envkit.run`'s.
"""
