# SPDX-License-Identifier: Apache-2.0
"""Is the environment sound? Read recorded traces, find faults, say whose they are, cite them.

In the order data flows:

types            runs, calls, failures, findings
find, document   which files are candidates; how an untrusted one is opened
openai_messages, atif, own, harbor, stored, read   the forms, and a directory as a stream of runs
envelope, cause  a tool result unwrapped to typed evidence of success or failure
secrets, text, fingerprint   what may be shown, and errors of one kind made equal
detect           one detector a file, and the corpus step that decides owners
tally, examine, report   counts, the story of an audit, its result
screen, html     the result for a terminal and for a browser

Nothing here imports harbor, mcp, torch, ray or vllm, and pyarrow only to read a store.
"""

from envkit.audit.examine import examine
from envkit.audit.report import SCHEMA, Report

__all__ = ["SCHEMA", "Report", "examine"]
