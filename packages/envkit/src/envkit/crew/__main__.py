# SPDX-License-Identifier: Apache-2.0
"""``python -m envkit.crew SOCKET``: see `envkit.crew.serve`."""

from __future__ import annotations

import os
import sys

from envkit.cli_extras import install_line, require


def main(path: str) -> int:
    """The status to exit with; what is not installed is one line before anything is imported."""
    try:
        require("harbor", "mcp", "pyarrow", "tokenizers")
    except ModuleNotFoundError as error:
        print(install_line(error, "run"), file=sys.stderr)
        return 2
    from envkit.crew.serve import serve

    return serve(path)


if __name__ == "__main__":
    status = 1
    try:
        status = main(sys.argv[1])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # a thread that builds a root holds up nobody
