#!/bin/sh
# The oracle: reads the note and the table as an agent would, and works the answer out.
set -eu
exec python3 "$(dirname "$0")/solve.py"
