# SPDX-License-Identifier: Apache-2.0
"""Marks by which two trials that share anything find each other out.

Contract: a mark is an empty file of an unguessable name in each place an agent may write, and a
sleeping process that carries the name. It is there only while no agent can look: from the start of
a box until its agent acts, and again from the moment everything was collected until the box is
gone. Whenever a box is searched its own mark is in place, so of two boxes that share a place the
one that is searched last sees the other's. A mark of another trial is `NotIsolated`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from envkit.fault import NotIsolated

SEARCH_S: Final = 15.0
"""For a search of one box: a command of a few milliseconds on a machine with 550 of them."""

_PREFIX: Final = ".envkit-canary-"
_PLACES: Final = ("/filesystem", "/tmp", "/var/tmp", "/dev/shm")
_SLEEP_S: Final = 1200
_DONE: Final = "envkit searched"
_SEEN: Final = re.compile(rf"(?P<place>\S*){re.escape(_PREFIX)}(?P<mark>[0-9a-f]{{16}})")
_PID: Final = re.compile(r"^pid (\d+)$", re.MULTILINE)

_FILES: Final = f"""
for f in {" ".join(f"{place}/{_PREFIX}*" for place in _PLACES)}; do [ -e "$f" ] && echo "$f"; done
echo '{_DONE}'
"""
_PROCESSES: Final = f"grep -aHo '{_PREFIX}[0-9a-f]\\{{16\\}}' /proc/[0-9]*/environ 2>/dev/null"
_SLEEP: Final = f'sleep {_SLEEP_S} </dev/null >/dev/null 2>&1 & echo "pid $!"'


@dataclass(slots=True)
class Canary:
    """The marks of one trial, and what was found of the others'."""

    mark: str
    """Sixteen hexadecimal digits, of this attempt alone."""
    searched: int = 0
    """How often a box of the trial was searched."""
    failed: int = 0
    """How often it could not be."""
    _pid: str = ""
    """Of the sleeping process, while it sleeps."""

    @property
    def out(self) -> bool:
        """Whether the marks of a box that started are still there."""
        return bool(self._pid)

    def arrive(self) -> str:
        """The command for a box that has just started."""
        return f"{self._put()}\nENVKIT_CANARY={_PREFIX}{self.mark} {_SLEEP}"

    def arrived(self, output: str) -> None:
        """Take in what that printed; where it printed nothing the marks are missing."""
        found = _PID.search(output)
        self._pid = found[1] if found else ""
        self.failed += not found

    def hide(self) -> str:
        """The command for a box whose agent is about to act: look, and take the marks away."""
        kill, self._pid = f"kill -9 {self._pid} 2>/dev/null" if self._pid else "", ""
        files = " ".join(f"{place}/{_PREFIX}{self.mark}" for place in _PLACES)
        return f"{_PROCESSES}\n{_FILES}\nrm -f {files}\n{kill}\ntrue"

    def leave(self) -> str:
        """The command for a box that nobody needs any more."""
        return f"{self._put()}\n{_FILES}"

    def read(self, output: str) -> list[NotIsolated]:
        """Take in what a search printed: one fault for each other trial's mark.

        A search that did not come to its end, or did not find its trial's own file, has failed.
        """
        seen = {found["mark"]: found["place"] for found in _SEEN.finditer(output)}
        seen.pop(self.mark, None)
        sound = f"/{_PREFIX}{self.mark}\n" in output and _DONE in output
        self.searched += sound
        self.failed += not sound
        return [
            NotIsolated(f"another trial's mark is in this box: {place}{_PREFIX}{mark}")
            for mark, place in sorted(seen.items())
        ]

    def _put(self) -> str:
        each = f"for d in {' '.join(_PLACES)}"
        return f'{each}; do [ -d "$d" ] && : > "$d/{_PREFIX}{self.mark}"; done 2>/dev/null'
