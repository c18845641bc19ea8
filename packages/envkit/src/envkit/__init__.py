# SPDX-License-Identifier: Apache-2.0
"""Trustworthy agent environments, in the order data flows.

fault       who owns a failure, and whether its reward may be trained on
deadline    a named budget for every operation on the outside world
pace        at most so many starts a second
retry       retries with full jitter that keep the failed attempts
trajectory  what a trial leaves for trainers: tokens, segments, reward, validity
task        a Harbor task directory and the world it plays in; static checks
image       a world's declared packages, files and tools as a root file system
sandbox     isolated boxes, their fork server, deadlines around any provider
servers     MCP office servers behind one gateway
agent       what acts in a trial: the MCP client and the replay agent
trial       start, act, grade, destroy: one trial over Harbor
preflight   many trials at training concurrency, a gate and a report
doctor      what this machine lacks for so many trials, and what fixes it
audit       recorded traces: typed evidence, detectors, a report
cli         the command line

Importing ``envkit`` loads none of harbor, mcp, torch, ray or vllm.
"""

__version__ = "0.1.0"
