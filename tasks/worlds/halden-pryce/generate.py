# SPDX-License-Identifier: Apache-2.0
"""Write the drive of Halden Pryce to OUT/filesystem, its mail and chat to OUT/apps_data.

Run as `python generate.py OUT`. The output depends on `facts` and on the versions of the
libraries alone: two runs write the same bytes.
"""

import os
import sys
from pathlib import Path

import office
import paper
import post


def main(out: Path) -> None:
    """Every document, in the folders a colleague would look for it."""
    os.environ.pop("SOURCE_DATE_EPOCH", None)  # reportlab would stamp its day into every PDF
    drive, state = out / "filesystem", out / "apps_data"
    for folder in (drive, state):
        folder.mkdir(parents=True, exist_ok=True)
    paper.write(drive)
    office.write(drive)
    post.write(drive, state)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
