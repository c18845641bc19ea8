# SPDX-License-Identifier: Apache-2.0
"""Write the shared drive of Brackwater Freight below OUT/filesystem.

Run as `python generate.py OUT`. The output depends on `facts.py` and on the versions of the
libraries alone: two runs write the same bytes.
"""

import sys
from pathlib import Path

import office
import pdfs
import texts


def main(out: Path) -> None:
    """Every document, in the folders a colleague would look for it."""
    drive = out / "filesystem"
    for folder in ("board", "operations", "planning", "policies", "results"):
        (drive / folder).mkdir(parents=True, exist_ok=True)
    (out / "apps_data").mkdir(parents=True, exist_ok=True)
    texts.write(drive)
    pdfs.write(drive)
    office.write(drive)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
