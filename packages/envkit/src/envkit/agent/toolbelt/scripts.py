# SPDX-License-Identifier: Apache-2.0
"""What the toolbelt ``code`` runs in the box, in bash and the tools that every box has.

What the model says reaches them as arguments, never as text of a script.
"""

from __future__ import annotations

import base64
import binascii
import shlex
from typing import Final

from envkit.agent.toolbelt.local import Refused

IS_DIRECTORY: Final = 65
"""Status of `READ` where the path is a directory."""

EDITED_BYTES: Final = 1 << 20
LISTED: Final = 500
MATCHES: Final = 500

GLOB: Final = f"""\
cd -- "$1" || exit 66
shopt -s globstar nullglob
compgen -G "$2" | sort | head -n {LISTED}
exit 0
"""
GREP: Final = f"""\
[ -e "$1" ] || {{ echo "$1: no such file or directory"; exit 66; }}
grep -rnIE --include="$3" -e "$2" -- "$1" | head -n {MATCHES}
status=${{PIPESTATUS[0]}}
[ "$status" -le 1 ] || [ "$status" -eq 141 ]
"""
READ: Final = f"""\
[ -e "$1" ] || {{ echo "$1: no such file or directory"; exit 66; }}
[ -d "$1" ] && {{ ls -A -p -- "$1"; exit {IS_DIRECTORY}; }}
[ -f "$1" ] || {{ echo "$1: no regular file"; exit 66; }}
tail -n +"$2" -- "$1" | head -n "$3"
exit 0
"""
FETCH: Final = f"""\
[ -f "$1" ] || {{ echo "$1: no such file"; exit 66; }}
size=$(wc -c < "$1") || exit 66
[ "$size" -le {EDITED_BYTES} ] || {{ echo "$1 has $size bytes; change it with bash"; exit 67; }}
base64 -- "$1"
"""
LEAVE: Final = """\
case "$1" in */*) mkdir -p -- "${1%/*}/" ;; esac && cat -- "$2" > "$1"
status=$?
rm -f -- "$2"
exit $status
"""


def begin_in(directory: str) -> str:
    """Where a command begins."""
    return f"cd {shlex.quote(directory)} 2>/dev/null || cd /"


def decoded(path: str, encoded: str) -> str:
    """What `FETCH` brought; raises Refused where it is no text."""
    try:
        return base64.b64decode(encoded, validate=False).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Refused("binary", f"{path} is no UTF-8 text; change it with bash") from error
