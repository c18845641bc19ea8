# SPDX-License-Identifier: Apache-2.0
"""Find in a failed command's output the line that names the cause, and its exit code.

Only called on text that a tool itself marked as failed, so the last line of the error channel is
evidence: a traceback ends in its exception, a shell ends in its complaint.
"""

from __future__ import annotations

import re
from typing import Final

from envkit.audit.text import clean

TAIL: Final = 4000
"""Characters at the end of an output that are looked at."""

EXIT_LINE: Final = re.compile(
    r"^\W{0,3}(?:(?:command|process) (?:failed|exited|finished) with )?"
    r"(?:exit[_ ](?:code|status)|return ?code|code)[\s:=\])]{1,3}(-?\d{1,10})\W{0,3}$",
    re.IGNORECASE,
)
_SECTION: Final = re.compile(r"^(?:error output|stderr output|stderr):$", re.IGNORECASE)
_SHELL_PREFIX: Final = re.compile(r"^(?:/\w+/)*(?:ba|da|z|k)?sh: (?:(?:line )?\d+: )?")
_EXCEPTION: Final = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning)(?:: .*)?$"
)
NOT_FOUND: Final = re.compile(
    r"^(?:(?:/\w+/)*(?:ba|da|z|k)?sh: (?:(?:line )?\d+: )?)?([\w.+/\-]{1,80}): "
    r"(?:(?:command )?not found|No such file or directory)$"
)
_MODULE_MISSING: Final = re.compile(r": (No module named [\w.\-]+)$")


def exit_code(text: str) -> int | None:
    """The exit code in the last line of ``text``, or None."""
    found = EXIT_LINE.match(_last_line(text))
    return int(found[1]) if found else None


def cause(text: str, code: int | None) -> str:
    """The line of a failed command's output that says why; all of it when no line stands out."""
    lines = error_lines(text)
    if not lines:
        return text.strip()
    if code == 127:
        missing = [line for line in lines if NOT_FOUND.match(line)]
        return _SHELL_PREFIX.sub("", missing[-1] if missing else lines[-1])
    raised = [line for line in lines if _EXCEPTION.match(line)]
    last = raised[-1] if raised else lines[-1]
    module = _MODULE_MISSING.search(last)
    return module[1] if module and not raised else _SHELL_PREFIX.sub("", last)


def error_lines(text: str) -> list[str]:
    """The lines of the error section, or of all the output when an exit line ends it.

    The exit line is not among them. Empty when the text has neither.
    """
    lines = [line.strip() for line in clean(text[-TAIL:]).split("\n")]
    starts = [index for index, line in enumerate(lines) if _SECTION.match(line)]
    if not starts and exit_code(text) is None:
        return []
    said = lines[starts[-1] + 1 :] if starts else lines
    return [line for line in said if line and not EXIT_LINE.match(line)]


def _last_line(text: str) -> str:
    lines = text[-200:].rstrip().rsplit("\n", 1)
    return lines[-1].strip()
