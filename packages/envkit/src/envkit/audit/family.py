# SPDX-License-Identifier: Apache-2.0
"""What kind of tool a name stands for: what its plain text may mean depends on it.

A shell's last line can be an exit code; a reader's text is somebody's document, in which the words
of an error prove nothing; a submission's echo is the agent's own answer.
"""

from __future__ import annotations

import re
from typing import Final

_SHELL: Final = re.compile(
    r"(?:^|[_.\-/])(?:bash|shell|sh|terminal|exec|execute|run|code_exec\w*|command|cmd|python|repl)"
    r"(?:$|[_.\-/])",
    re.IGNORECASE,
)
_READER: Final = re.compile(
    r"(?:read|view|open|cat|show|get|fetch|download)_?(?:\w+_)?(?:file|files|text|page|pages|url|contents?)$"
    r"|(?:^|[_.\-/])(?:cat|fetch|read|view|browse\w*|http_get|curl)$",
    re.IGNORECASE,
)
_SUBMIT: Final = re.compile(
    r"(?:^|[_.\-/])(?:final_answer|submit(?:_\w+)?|finish|attempt_completion|task_complete|mark_task_complete)$",
    re.IGNORECASE,
)
_PLAN: Final = re.compile(r"todo|(?:^|[_.\-/])(?:plan|think)(?:$|[_.\-/])", re.IGNORECASE)


def is_shell(tool: str) -> bool:
    """Runs commands and answers with their output."""
    return bool(_SHELL.search(tool))


def is_reader(tool: str) -> bool:
    """Answers with the text of a document."""
    return bool(_READER.search(tool))


def is_submit(tool: str) -> bool:
    """Hands in the answer and ends the run."""
    return bool(_SUBMIT.search(tool))


def is_plan(tool: str) -> bool:
    """Keeps the agent's notes; changes nothing in the world."""
    return bool(_PLAN.search(tool))
