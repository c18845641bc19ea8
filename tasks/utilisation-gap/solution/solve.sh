#!/bin/sh
# The oracle: reads the note, report, forms and minutes as an agent would, and compares the practices.
set -eu
exec python3 "$(dirname "$0")/solve.py"
