# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""``python killed_at.py POINT NUMBER SOCKET``: a crew, killed by SIGKILL at one exact place.

As `envkit.preflight`'s ``kill_at.py`` has it, whose points these are, and a few of a crew's own.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "preflight"))

from kill_at import LEFT, POINTS, Point, kill_at

OWN = {
    "buried": Point(function="envkit.preflight.begin:bury", when=LEFT),
    "swept": Point(function="envkit.crew.place:remove", when=LEFT),
    "stored-but-not-said": Point(function="envkit.crew.tell:ended"),
    "removed-but-not-said": Point(function="envkit.crew.place:remove", when=LEFT),
}

if __name__ == "__main__":
    kill_at({**POINTS, **OWN}[sys.argv[1]], int(sys.argv[2]))

    from envkit.crew.serve import serve

    sys.exit(serve(sys.argv[3]))
