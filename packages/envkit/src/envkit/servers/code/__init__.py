# SPDX-License-Identifier: Apache-2.0
"""The `code_execution_server`: the agent's own commands, run in the agent's own box.

language    is this shell or Python?
tools       code_exec
spill       output too long to show, kept in a file of the box
"""
